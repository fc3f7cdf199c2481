// The versions of a dashboard: who saved them, look at one, make one the newest again.

import { type DashboardHead, getVersions } from '../api/dashboards.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { dateTime } from '../time/clock.ts';

interface Props {
  id: string;
  shown: number;
  newest: number;
  /** Undefined for those who may not change it. */
  restore?: (version: number) => void;
}

export function Versions({ id, shown, newest, restore }: Props) {
  const loaded = useLoad((signal) => getVersions(id, signal), [id, newest]);
  if (loaded.data === null) return loaded.error === null ? null : <Failure error={loaded.error} retry={loaded.reload} />;
  const columns: Column<DashboardHead>[] = [
    {
      id: 'version',
      title: 'Version',
      cell: (one) =>
        one.version === shown ? (
          <b>{one.version}, shown</b>
        ) : (
          <Link to={`/dashboards/${id}`} query={{ versions: '1', ...(one.version === newest ? {} : { version: String(one.version) }) }}>
            Look at {one.version}
          </Link>
        ),
    },
    { id: 'at', title: 'Saved', cell: (one) => dateTime(one.saved_at) },
    { id: 'by', title: 'By', cell: (one) => one.saved_by, class: 'anywhere' },
    { id: 'note', title: 'Note', cell: (one) => one.note, class: 'wide' },
    {
      id: 'restore',
      title: '',
      cell: (one) =>
        restore !== undefined &&
        one.version !== newest && (
          <button type="button" class="small" onClick={() => restore(one.version)}>
            Restore {one.version}
          </button>
        ),
    },
  ];
  return (
    <section class="versions" aria-labelledby="versions-title">
      <h2 id="versions-title">Versions</h2>
      <Table caption="Versions" columns={columns} rows={loaded.data.dashboards} rowKey={(one) => String(one.version)} />
    </section>
  );
}
