//! Horizontal bars, one a server, whiskers from lowest to highest.

use super::svg::{Stroke, Svg};
use crate::stats::Spread;
use crate::units::number;

/// The content of a figure of bars.
pub(super) struct Bars {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) unit: &'static str,
    pub(super) bars: Vec<Bar>,
}

/// One server's bar.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) value: Spread,
    /// Behind the value: a mark of doubt, a ratio.
    pub(super) note: String,
}

const LEFT: f64 = 160.0;
/// Of a letter of a name, about.
const LETTER: f64 = 6.4;
const LONGEST: f64 = 500.0;
/// Behind the longest bar: its figure and note.
const BEHIND: f64 = 200.0;
const TOP: f64 = 66.0;
const ROW: f64 = 26.0;

impl Bars {
    /// Draws them, the longest first; `None` when there are none.
    pub(super) fn draw(mut self) -> Option<String> {
        self.bars.sort_by(|one, other| other.value.median.total_cmp(&one.value.median));
        let longest = self.bars.iter().map(|bar| bar.value.max).max_by(f64::total_cmp)?;
        if longest <= 0.0 {
            return None;
        }
        let names = self.bars.iter().map(|bar| shown(&bar.name).chars().count());
        let left = LEFT.max(28.0 + LETTER * names.max().unwrap_or(0) as f64);
        let height = TOP + ROW * self.bars.len() as f64 + 20.0;
        let mut svg = Svg::new(left + LONGEST + BEHIND, height, &self.title);
        svg.words((28.0, 30.0), "title", "start", &self.title);
        svg.words((28.0, 50.0), "soft small", "start", &self.subtitle);
        for (index, bar) in self.bars.iter().enumerate() {
            let corner = (left, TOP + ROW * index as f64);
            self.draw_bar(bar, corner, LONGEST / longest, &mut svg);
        }
        Some(svg.finish())
    }

    fn draw_bar(&self, bar: &Bar, (left, y): (f64, f64), scale: f64, svg: &mut Svg) {
        let (stroke, middle) = (Stroke::of(&bar.name), y + ROW / 2.0);
        svg.words((left - 10.0, middle + 4.0), "small", "end", &shown(&bar.name));
        svg.bar((left, y + 4.0), (bar.value.median * scale, ROW - 8.0), stroke.colour);
        let whisker = Stroke { colour: "#23262b", width: 1.2, dashed: false };
        let ends = [bar.value.min, bar.value.max].map(|value| left + value * scale);
        svg.line(&[(ends[0], middle), (ends[1], middle)], &whisker);
        for end in ends {
            svg.line(&[(end, middle - 4.0), (end, middle + 4.0)], &whisker);
        }
        let words = format!("{} {}", number(bar.value.median, self.unit), bar.note);
        svg.words((ends[1] + 8.0, middle + 4.0), "small", "start", words.trim_end());
    }
}

/// The options of a variant in words.
fn shown(name: &str) -> String {
    let mut parts = name.split(":without=");
    let first = parts.next().unwrap_or_default().replace(':', ", ").replace('=', " ");
    let without: Vec<&str> = parts.collect();
    if without.is_empty() { first } else { format!("{first} without {}", without.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_have_room() {
        assert_eq!(shown("thread-pool:pool=6"), "thread-pool, pool 6");
        assert_eq!(shown("sped:without=lazy-date:without=b"), "sped without lazy-date, b");
        let name = "thread-pool:without=cached-headers:without=lazy-date:without=gather-write";
        let value = Spread { min: 1.0, median: 1.0, max: 1.0 };
        let bars = vec![Bar { name: name.into(), value, note: String::new() }];
        let bars = Bars { title: "Mix".into(), subtitle: "".into(), unit: "/s", bars };
        let text = bars.draw().unwrap();
        let width = text.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(width.parse::<f64>().unwrap() > 1000.0, "{width}");
    }

    #[test]
    fn the_longest_bar_comes_first() {
        let bar = |name: &str, median: f64| Bar {
            name: name.into(),
            value: Spread { min: median, median, max: median },
            note: String::new(),
        };
        let bars = |bars| Bars { title: "Mix".into(), subtitle: "".into(), unit: "/s", bars };
        let text = bars(vec![bar("nginx", 10.0), bar("afpa", 20_000.0)]).draw().unwrap();
        assert!(text.find(">afpa<").unwrap() < text.find(">nginx<").unwrap());
        assert!(text.contains("20.0 k/s"));
        assert!(bars(Vec::new()).draw().is_none());
        assert!(bars(vec![bar("nginx", 0.0)]).draw().is_none());
    }
}
