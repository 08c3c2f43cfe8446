//! The papers' rule: requests of one client within fifteen seconds share a connection.

use std::collections::HashMap;

use super::Entry;

/// How long a connection waits for its next request, in seconds.
const PERIOD: i64 = 15;

/// Indices of `entries` (which are sorted by time), connection by connection, in the order in which
/// the connections begin.
///
/// "Within a fifteen-second period" is read as a server's keep-alive time-out would: a request that
/// comes less than fifteen seconds after the client's last one joins its connection.
pub fn sessions(entries: &[Entry]) -> Vec<Vec<usize>> {
    let mut sessions: Vec<Vec<usize>> = Vec::new();
    // By client: its latest session, and when it last asked.
    let mut latest: HashMap<&str, (usize, i64)> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let open = latest.get(entry.client.as_str()).filter(|(_, at)| entry.time - at < PERIOD);
        let number = match open {
            Some((number, _)) => *number,
            None => {
                sessions.push(Vec::new());
                sessions.len() - 1
            }
        };
        if let Some(session) = sessions.get_mut(number) {
            session.push(index);
        }
        latest.insert(&entry.client, (number, entry.time));
    }
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_seconds_of_silence_end_a_connection() {
        let log = [("a", 0), ("b", 1), ("a", 14), ("a", 28), ("b", 16), ("a", 43), ("a", 43)];
        let mut entries: Vec<Entry> = log
            .into_iter()
            .map(|(client, time)| Entry {
                client: client.into(),
                time,
                path: "/".into(),
                status: 200,
                bytes: 1,
            })
            .collect();
        entries.sort_by_key(|entry| entry.time);
        let times: Vec<Vec<i64>> = sessions(&entries)
            .into_iter()
            .map(|session| session.into_iter().map(|index| entries[index].time).collect())
            .collect();
        assert_eq!(times, [vec![0, 14, 28], vec![1], vec![16], vec![43, 43]]);
        assert!(sessions(&[]).is_empty());
    }
}
