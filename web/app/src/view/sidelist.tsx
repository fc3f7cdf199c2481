// The sections of a host beside its charts.

import { useEffect, useState } from 'preact/hooks';
import { SeverityShape } from '../part/icon.tsx';
import type { Section } from '../item/sections.ts';
import type { Unusual } from '../item/unusual.ts';

export function SideList({ sections, unusual }: { sections: Section[]; unusual: Unusual | null }) {
  const [here, setHere] = useState(sections[0]?.id ?? '');
  useEffect(() => {
    const seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) if (entry.isIntersecting) setHere(entry.target.id);
      },
      { rootMargin: '-15% 0px -70% 0px' },
    );
    for (const section of sections) {
      const element = document.getElementById(section.id);
      if (element !== null) seen.observe(element);
    }
    return () => seen.disconnect();
  }, [sections]);
  const jump = (event: MouseEvent, id: string): void => {
    event.preventDefault();
    document.getElementById(id)?.scrollIntoView({ block: 'start' });
  };
  return (
    <nav class="side" aria-label="Sections">
      {sections.map((section) => (
        <a key={section.id} href={`#${section.id}`} aria-current={here === section.id ? 'true' : undefined} onClick={(event) => jump(event, section.id)}>
          <span>{section.title}</span>
          {unusual?.section === section.id && (
            <span class="unusual" title={unusual.why}>
              <SeverityShape severity="warning" /> unusual
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}
