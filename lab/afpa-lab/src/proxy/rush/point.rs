//! The cases of a rush: how many clients, before which servers.

/// How many clients there are at a time, unless the command line says otherwise.
pub const CLIENTS: [u32; 4] = [64, 256, 1_000, 10_000];

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    /// At a time, each with one connection.
    pub(super) clients: u32,
    /// One request a connection.
    pub(super) once: bool,
    /// Behind the proxy.
    pub(super) servers: u16,
    /// They close each connection after its answer.
    pub(super) closes: bool,
    /// They send 10 KB.
    pub(super) longer: bool,
}

impl Point {
    /// `256-kept-8-close`: clients, their connections, servers, and what these do; `1-kept-1-keep-10k`: with longer answers.
    pub(super) fn name(&self) -> String {
        let kept = if self.once { "once" } else { "kept" };
        let closes = if self.closes { "close" } else { "keep" };
        let longer = if self.longer { "-10k" } else { "" };
        format!("{}-{kept}-{}-{closes}{longer}", self.clients, self.servers)
    }
}

/// All cases.
pub(super) fn points(clients: &[u32]) -> Vec<Point> {
    let mut points = Vec::new();
    for &clients in clients {
        for once in [false, true] {
            for closes in [false, true] {
                for servers in [1, 8] {
                    points.push(Point { clients, once, servers, closes, longer: false });
                }
            }
        }
        points.push(Point { clients, once: false, servers: 1, closes: false, longer: true });
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let mut names: Vec<String> = points(&CLIENTS).iter().map(Point::name).collect();
        assert_eq!((names.len(), names[0].as_str()), (36, "64-kept-1-keep"));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 36);
    }
}
