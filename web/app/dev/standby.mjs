// The fake server's standbys.

/** standby answers the route of the standbys. */
export function standby() {
  const standbys = [{ address: 'https://second.example:8420', lag_bytes: 1_830, seen_at: Date.now() - 400, seeding: false }];
  return { role: 'primary', epoch: 1, fenced_by: 0, primary: '', synchronous: false, refusal: '', lag: null, standbys };
}
