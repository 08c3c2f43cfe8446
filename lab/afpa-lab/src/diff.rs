//! Two folders of results, side by side.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::results::{Point, Results};
use crate::stats::Spread;
use crate::summary::Summary;
use crate::units::{digits, number};

/// A difference between two runs at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where.
    pub point: Point,
    /// The server.
    pub server: String,
    /// Requests a second of both.
    pub rates: [Spread; 2],
    /// Second over first, by medians.
    pub ratio: f64,
    /// Whether it is a difference: the spreads do not touch, and are further apart than the noise of either.
    pub is_one: bool,
}

/// Compares two folders, for people: first the other differences, then figure by figure.
///
/// # Errors
///
/// When one of them has no results.
pub fn folders(one: &Path, other: &Path) -> Result<String> {
    let runs = [Results::read(one)?, Results::read(other)?];
    let mut text = surroundings(&runs[0], &runs[1]);
    let differences = between(&runs[0], &runs[1]);
    if differences.is_empty() {
        text += "the two have no point in common\n";
    }
    let mut last = None;
    for difference in &differences {
        if last != Some(&difference.point) {
            text += &format!("{}\n", crate::report::heading(&runs[1], &difference.point));
            last = Some(&difference.point);
        }
        text += &difference.line();
    }
    Ok(text)
}

/// Every server at every point that both have.
pub fn between(one: &Results, other: &Results) -> Vec<Difference> {
    let (first, second) = (Summary::of(one), Summary::of(other));
    let mut differences = Vec::new();
    for was in &first.points {
        let Some(is) = second.points.iter().find(|is| is.point == was.point) else { continue };
        let noise = was.noise.into_iter().chain(is.noise).fold(0.0, f64::max);
        for row in &was.rows {
            let Some(now) = is.row(&row.server) else { continue };
            let ratio = now.rate.median / row.rate.median;
            let apart = now.rate.min > row.rate.max || now.rate.max < row.rate.min;
            differences.push(Difference {
                point: was.point.clone(),
                server: row.server.clone(),
                rates: [row.rate, now.rate],
                ratio,
                is_one: apart && ratio.ln().abs() > (1.0 + noise).ln(),
            });
        }
    }
    differences
}

impl Difference {
    fn line(&self) -> String {
        let [was, is] = self.rates;
        format!(
            "  {:<20} {:>10} -> {:>10}  {}x{}\n",
            self.server,
            number(was.median, "/s"),
            number(is.median, "/s"),
            digits(self.ratio),
            if self.is_one { "" } else { "  no difference" }
        )
    }
}

/// Differences besides the figures: they may explain a difference between figures.
fn surroundings(one: &Results, other: &Results) -> String {
    let mut text = String::new();
    let mut compare = |what: &str, was: &str, is: &str| {
        if was != is {
            text += &format!("{what}: {was} -> {is}\n");
        }
    };
    let (was, is) = (&one.environment, &other.environment);
    compare("kernel", &was.kernel, &is.kernel);
    compare("system", &was.system, &is.system);
    compare("processor", &was.processor, &is.processor);
    compare("cores", &was.cores.to_string(), &is.cores.to_string());
    let commit = |found: &Option<String>| found.clone().unwrap_or_else(|| "unknown".into());
    compare("commit", &commit(&was.commit), &commit(&is.commit));
    let versions = |results: &Results| -> BTreeMap<String, String> {
        let servers = results.servers.iter();
        servers.map(|server| (server.name.clone(), server.version.clone())).collect()
    };
    let (was, is) = (versions(one), versions(other));
    for (name, version) in &was {
        match is.get(name) {
            Some(now) => compare(name, version, now),
            None => compare(name, version, "not measured"),
        }
    }
    for name in is.keys().filter(|name| !was.contains_key(*name)) {
        compare(name, "not measured", &is[name]);
    }
    for (name, bed) in &one.method.beds {
        if let Some(now) = other.method.beds.get(name) {
            compare(&format!("bed {name}"), &format!("{bed:?}"), &format!("{now:?}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::AGAIN;
    use crate::summary::tests::results;

    #[test]
    fn a_difference_is_beyond_spread_and_noise() {
        let was = results(&[("afpa", &[100.0, 102.0, 101.0]), ("nginx", &[50.0, 51.0, 50.0])]);
        let is = results(&[("afpa", &[130.0, 128.0, 129.0]), ("nginx", &[51.0, 50.0, 52.0])]);
        let found = between(&was, &is);
        assert_eq!(found.len(), 2);
        assert!(found[0].is_one && !found[1].is_one, "{found:?}");
        let again = format!("nginx{AGAIN}");
        let noisy = results(&[
            ("afpa", &[130.0, 128.0, 129.0]),
            ("nginx", &[50.0; 3]),
            (&again, &[80.0; 3]),
        ]);
        assert!(!between(&was, &noisy)[0].is_one);
    }

    #[test]
    fn two_folders_are_told_apart() {
        let (was, is) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut before = results(&[("afpa", &[100.0; 3])]);
        before.environment.kernel = "6.1".into();
        before.write(was.path()).unwrap();
        results(&[("afpa", &[200.0; 3])]).write(is.path()).unwrap();
        let text = folders(was.path(), is.path()).unwrap();
        assert!(text.contains("kernel: 6.1 -> ") && text.contains("2.00x"), "{text}");
        assert!(folders(was.path(), Path::new("/nonexistent")).is_err());
    }
}
