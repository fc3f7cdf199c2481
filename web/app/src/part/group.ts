/** groupBy puts rows with the same key together and keeps the order in which keys came first. */
export function groupBy<Row>(rows: Iterable<Row>, key: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const name = key(row);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [row]);
    else group.push(row);
  }
  return groups;
}
