package alert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

const (
	// maxParts bounds the messages into which one digest is split.
	maxParts = 4
	// minLineBytes is how far lines of high and disaster are shortened to find room.
	minLineBytes = 60
	maxLineBytes = 300
	// maxHostLines bounds the lines that count problems by host.
	maxHostLines = 20
)

// entry is what a digest says of one problem.
type entry struct {
	last model.Alert // the newest alert
	// problem says that the problem was among the alerts, over that its recovery was.
	problem, over bool
}

// compose makes messages of alerts to one address: one alert goes out as it is, several become a digest.
func compose(ch *channel, alerts []model.Alert, s surroundings, now int64) []part {
	if len(alerts) == 1 {
		return []part{{alerts: alerts, message: messageOf(ch, &alerts[0], s)}}
	}
	entries := entriesOf(alerts)
	urgent, lines := digest(entries, s.zone, ch.maxBytes)
	texts := split(urgent, lines, ch.maxBytes)
	subject := subjectOf(entries)
	parts := make([]part, len(texts))
	for i, text := range texts {
		head := alerts[0]
		head.Severity = entries[0].last.Severity
		message := messageOf(ch, &head, s)
		message.Subject, message.Body = subject, text
		if len(texts) > 1 {
			message.Subject += fmt.Sprintf(" (%d of %d)", i+1, len(texts))
		}
		message.ID, message.Thread = fmt.Sprintf("tidemark-digest-%d-%d-%d", alerts[0].ID, now, i+1), ""
		message.Expand = expandDigest(ch, &head, message, s)
		parts[i].message = message
	}
	// The alerts belong to all parts together: they are done when the last part has arrived.
	parts[len(parts)-1].alerts = alerts
	return parts
}

// expandDigest expands the macros of a sender's settings for a digest, which has no single event.
func expandDigest(ch *channel, head *model.Alert, m media.Message, s surroundings) func(string) string {
	group := *head
	group.Name, group.Host, group.Tags, group.Macros = m.Subject, "", nil, maps.Clone(head.Macros)
	delete(group.Macros, "{EVENT.NAME}")
	return func(text string) string {
		return expand(text, maxTextBytes+len(m.Body), func(macro string) string { return ch.value(macro, &m, &group, s) })
	}
}

// entriesOf puts together what belongs to one problem: the most severe first, those that are over last.
func entriesOf(alerts []model.Alert) []entry {
	byProblem := make(map[model.EventID]int)
	var entries []entry
	for _, alert := range alerts {
		i, ok := byProblem[alert.ProblemID]
		if !ok {
			i = len(entries)
			byProblem[alert.ProblemID] = i
			entries = append(entries, entry{})
		}
		e := &entries[i]
		e.last = alert
		e.problem = e.problem || alert.Kind == model.AlertProblem
		e.over = e.over || alert.Kind == model.AlertRecovery || alert.Kind == model.AlertCancelled
	}
	slices.SortStableFunc(entries, func(x, y entry) int {
		switch {
		case x.over != y.over && x.over:
			return 1
		case x.over != y.over:
			return -1
		}
		return cmp.Or(cmp.Compare(y.last.Severity, x.last.Severity), cmp.Compare(x.last.At, y.last.At), cmp.Compare(x.last.ProblemID, y.last.ProblemID))
	})
	return entries
}

// subjectOf counts: "12 problems, 3 high, 1 disaster; 4 resolved".
func subjectOf(entries []entry) string {
	problems, over := 0, 0
	var counts [model.Disaster + 1]int
	for i := range entries {
		if entries[i].over {
			over++
			continue
		}
		problems++
		counts[min(entries[i].last.Severity, model.Disaster)]++
	}
	var b strings.Builder
	if problems > 0 {
		fmt.Fprintf(&b, "%s", plural(problems, "problem"))
		for s := model.Disaster; s >= model.High; s-- {
			if counts[s] > 0 {
				fmt.Fprintf(&b, ", %d %s", counts[s], s)
			}
		}
	}
	if over > 0 {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d resolved", over)
	}
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// digest returns the lines of high and disaster, which are always all named, and the others. When there is not room for all others,
// they are counted by host.
func digest(entries []entry, zone *time.Location, limit int) (urgent, others []string) {
	size := 0
	var rest []entry
	for i := range entries {
		e := &entries[i]
		line := lineOf(e, zone)
		size += len(line) + 1
		if e.last.Severity >= model.High {
			urgent = append(urgent, line)
			continue
		}
		rest = append(rest, *e)
		others = append(others, line)
	}
	if size <= limit {
		return urgent, others
	}
	return urgent, countByHost(rest)
}

// lineOf says one problem in one line.
func lineOf(e *entry, zone *time.Location) string {
	state := ""
	switch {
	case e.over && e.problem:
		state = "over already, "
	case e.over:
		state = "resolved, "
	case e.last.Kind == model.AlertUpdate:
		state = "updated, "
	case e.last.Step > 1:
		state = fmt.Sprintf("step %d, ", e.last.Step)
	}
	line := fmt.Sprintf("%s%s: %s: %s (%s)", state, e.last.Severity, e.last.Host, e.last.Name, time.Unix(0, e.last.At).In(zone).Format("Jan 2 15:04:05"))
	return shortLine(line, maxLineBytes)
}

func shortLine(line string, limit int) string {
	line = strings.ReplaceAll(line, "\n", " ")
	if len(line) > limit {
		return cut(line, limit-len("…")) + "…"
	}
	return line
}

// countByHost says how many problems each host has, those with most first.
func countByHost(entries []entry) []string {
	counts := make(map[string]int)
	for i := range entries {
		counts[entries[i].last.Host]++
	}
	hosts := make([]string, 0, len(counts))
	for host := range counts {
		hosts = append(hosts, host)
	}
	slices.SortFunc(hosts, func(x, y string) int { return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y)) })
	var lines []string
	shown := 0
	for _, host := range hosts[:min(len(hosts), maxHostLines)] {
		lines = append(lines, shortLine(fmt.Sprintf("%s: %s below high", host, plural(counts[host], "change")), maxLineBytes))
		shown += counts[host]
	}
	if rest := len(entries) - shown; rest > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s below high", plural(len(hosts)-maxHostLines, "other host"), plural(rest, "change")))
	}
	return lines
}

// split makes texts of at most limit bytes of lines, at most maxParts. When high and disaster do not fit, their lines get shorter; only if they do
// not fit even then the texts become longer than the limit, because all of them are named.
func split(urgent, others []string, limit int) []string {
	lines := slices.Concat(urgent, others)
	for length := maxLineBytes; ; length = length * 3 / 4 {
		var texts []string
		for _, line := range lines {
			line = shortLine(line, max(length, minLineBytes))
			if last := len(texts) - 1; last >= 0 && len(texts[last])+len(line)+1 <= limit {
				texts[last] += "\n" + line
			} else {
				texts = append(texts, line)
			}
		}
		if len(texts) <= maxParts {
			return texts
		}
		if length <= minLineBytes {
			size := 0
			for _, text := range texts {
				size += len(text) + 1
			}
			limit = size/maxParts + maxLineBytes
		}
	}
}
