//! SPECweb99: files as in SPECweb96, chosen by Zipf's law, and a part that an application makes.

use anyhow::{Result, ensure};

use super::mixes::{CLASSES, FILES, MOST_FOLDERS};
use super::order::Order;
use super::{Object, Request, Workload};

/// Where the application's part begins: servers of files pass it on.
const APPLICATION: &str = "/app";
/// Percent of requests that the application answers: two kinds of GET with an advertisement, one by CGI, and POST.
const DYNAMIC: [f64; 4] = [12.45, 12.60, 0.15, 4.80];
/// Places of the nine files of a class in the order of their popularity.
const RANKS: [u32; FILES as usize] = [9, 6, 4, 2, 1, 3, 5, 7, 8];
/// The sum of all weights: the rarest file of the most folders still has a weight.
const WEIGHTS: f64 = 4e9;

/// The mix of so many connections.
pub(super) fn specweb99(connections: u64) -> Result<Workload> {
    let folders = folders(connections);
    let possible = connections > 0 && folders <= MOST_FOLDERS;
    ensure!(possible, "{connections} connections need {folders} folders");
    let dynamic = DYNAMIC.iter().sum::<f64>() / 100.0;
    let (mut objects, mut requests) = (Vec::new(), Vec::new());
    for (part, share_of_part) in [("", 1.0 - dynamic), (APPLICATION, dynamic)] {
        for folder in 0..folders {
            for (class, (smallest, share)) in CLASSES.into_iter().enumerate() {
                for file in 1..=FILES {
                    let size = (f64::from(file) * smallest).round() as u64;
                    let path = format!("{part}/specweb99/dir{folder:05}/class{class}_{file}.html");
                    let object = Object::new(path, size);
                    let file_share = zipf(u64::from(RANKS[file as usize - 1]), u64::from(FILES));
                    let chance =
                        share_of_part * zipf(folder + 1, folders) * share / 100.0 * file_share;
                    let weight = (WEIGHTS * chance).round().max(1.0) as u32;
                    requests.push(Request::get(&object).with_weight(weight));
                    objects.push(object);
                }
            }
        }
    }
    Ok(Workload {
        name: format!("specweb99-{connections}"),
        family: "specweb99".into(),
        title: format!("SPECweb99 mix, {folders} folders ({connections} connections)"),
        point: Some(connections as f64),
        about: "Taken from the published description: the four classes of nine files of SPECweb96; folders and the files \
                of a class by Zipf's law, the middle file first; 25 folders and two more for each three connections; \
                30 % of the requests are dynamic. Approximated: the four kinds of dynamic requests (two with an \
                advertisement 12.45 and 12.60 %, CGI 0.15 %, POST 4.80 %) are GETs of the same files by another \
                path, which the server passes on to an application on its core; clients ask as fast as they are \
                answered, and not for 400 kb/s each; no result of SPEC."
            .into(),
        objects,
        requests,
        order: Order::Mix,
    })
}

/// 400 kb/s of 122 KB for each connection and five folders: two thirds of a folder for each.
fn folders(connections: u64) -> u64 {
    (25.0 + connections as f64 * 400_000.0 / 122_000.0 / 5.0) as u64
}

/// Share of the one of that rank among so many.
fn zipf(rank: u64, many: u64) -> f64 {
    1.0 / rank as f64 / (1..=many).map(|rank| 1.0 / rank as f64).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(workload: &Workload, wanted: impl Fn(&str) -> bool) -> f64 {
        let weights = |all: bool| {
            let requests = workload.all_requests().iter();
            let chosen = requests.filter(|request| all || wanted(&request.path));
            chosen.map(|request| f64::from(request.weight)).sum::<f64>()
        };
        weights(false) / weights(true)
    }

    #[test]
    fn three_of_ten_requests_are_the_applications() {
        let mix = specweb99(1).unwrap();
        let of_application = share(&mix, |path| path.starts_with("/app/"));
        assert!((of_application - 0.30).abs() < 1e-4, "{of_application}");
        let middle = share(&mix, |path| path.contains("/class1_5."));
        assert!((middle - 0.5 * 0.3535).abs() < 1e-4, "{middle}");
        let large = share(&mix, |path| path.contains("/class3_"));
        assert!((large - 0.01).abs() < 1e-4, "{large}");
    }

    #[test]
    fn folders_grow_with_the_connections() {
        assert_eq!([1, 64, 2048].map(folders), [25, 66, 1367]);
        let mix = specweb99(64).unwrap();
        assert_eq!(mix.all_requests().len(), 2 * 66 * 36);
        // The first of 66 folders is asked for every fifth time.
        let first = share(&mix, |path| path.contains("/dir00000/"));
        assert!((first - 0.209).abs() < 0.001, "{first}");
        assert!(specweb99(0).is_err() && specweb99(u64::MAX / 2).is_err());
    }
}
