//! The figures of the benches: panels of horizontal bars, one bar a server, with a caption that says
//! what a bar is.

use super::svg::Svg;
use crate::stats::Spread;

/// A figure of panels.
pub struct Panels {
    /// The title of all panels.
    pub title: String,
    /// The meaning of a bar, its whisker and its label; each a line below the title.
    pub caption: Vec<String>,
    /// Panels beside each other.
    pub columns: usize,
    /// Whether all panels have the scale of the largest figure, or each its own.
    pub one_scale: bool,
    /// In reading order.
    pub panels: Vec<Panel>,
}

/// One panel.
pub struct Panel {
    /// The title of this panel.
    pub title: String,
    /// From the top.
    pub bars: Vec<PanelBar>,
}

/// One server's bar.
pub struct PanelBar {
    /// The server.
    pub name: String,
    /// The bar ends at the median; the whisker spans the others.
    pub value: Spread,
    /// Behind the bar.
    pub label: String,
}

const WIDTH: f64 = 900.0;
const MARGIN: f64 = 28.0;
const GAP: f64 = 16.0;
/// Above the bars of a panel, a bar, and below them.
const HEAD: f64 = 40.0;
const ROW: f64 = 30.0;
/// Left of the bars, and right of the longest one.
const NAME: f64 = 7.2;
const VALUE: f64 = 7.0;
const INSET: f64 = 14.0;

const STYLE: &str = "
  .ground { fill: #fbfaf7 } .panel { fill: #fff; stroke: #e4e0d6 }
  text { font: 13px system-ui, sans-serif; fill: #23262b } .soft { fill: #6b6f76 }
  .title { font-size: 19px; font-weight: 650 } .head { font-weight: 600 }
  .bar { fill: #b9bec7 } .bar.afpa { fill: #eda088 } .bar.afpa-kernel { fill: #e2603a }
  .bar.nginx-attached { fill: #eda088 } .bar.nginx { fill: #5f9e76 } .bar.h2o { fill: #5b82b8 }
  .bar.haproxy { fill: #8f7fb8 } .bar.reflector { fill: #e4e0d6 }
  .whisker { stroke: #23262b; stroke-width: 1.5; fill: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14171c } .panel { fill: #1b1f26; stroke: #2c323c } text { fill: #e8e6e1 }
    .soft { fill: #9aa0aa } .whisker { stroke: #e8e6e1 } .bar { fill: #5a616d }
    .bar.afpa-kernel { fill: #f0764f } .bar.reflector { fill: #2c323c } }
";

impl Panels {
    /// The picture; `None` when there is no bar to draw.
    pub fn draw(&self) -> Option<String> {
        let bars = || self.panels.iter().flat_map(|panel| &panel.bars);
        let largest = bars().map(|bar| bar.value.max).max_by(f64::total_cmp)?;
        let columns = self.columns.max(1);
        let gaps = GAP * (columns - 1) as f64;
        let width = (WIDTH - 2.0 * MARGIN - gaps) / columns as f64;
        let most = self.panels.iter().map(|panel| panel.bars.len()).max().unwrap_or(0);
        let panel_height = HEAD + ROW * most as f64 + GAP;
        let top = 34.0 + 18.0 * self.caption.len() as f64 + 20.0;
        let lines = self.panels.len().div_ceil(columns) as f64;
        let height = top + lines * (panel_height + GAP) + 12.0;
        let mut svg = Svg::styled(WIDTH, height, &self.title, STYLE);
        svg.words((MARGIN, 34.0), "title", "start", &self.title);
        for (line, words) in (1..).zip(&self.caption) {
            svg.words((MARGIN, 38.0 + 18.0 * f64::from(line)), "soft", "start", words);
        }
        for (index, panel) in self.panels.iter().enumerate() {
            let (column, line) = ((index % columns) as f64, (index / columns) as f64);
            let corner = (MARGIN + column * (width + GAP), top + line * (panel_height + GAP));
            let scale_to = if self.one_scale { largest } else { panel.largest() };
            panel.draw(corner, (width, panel_height), scale_to, &mut svg);
        }
        Some(svg.finish())
    }
}

impl Panel {
    fn largest(&self) -> f64 {
        self.bars.iter().map(|bar| bar.value.max).fold(0.0, f64::max)
    }

    fn draw(&self, (x, y): (f64, f64), (width, height): (f64, f64), scale_to: f64, svg: &mut Svg) {
        let longest = |words: fn(&PanelBar) -> &str| {
            self.bars.iter().map(|bar| words(bar).chars().count()).max().unwrap_or(0) as f64
        };
        let names = NAME * longest(|bar| &bar.name) + 12.0;
        let values = VALUE * longest(|bar| &bar.label) + 10.0;
        let room = (width - 2.0 * INSET - names - values).max(20.0);
        let scale = if scale_to > 0.0 { room / scale_to } else { 0.0 };
        svg.shape((x, y), (width, height), 8.0, "panel");
        svg.words((x + INSET, y + 26.0), "head", "start", &self.title);
        for (index, bar) in self.bars.iter().enumerate() {
            let top = y + HEAD + ROW * index as f64;
            bar.draw((x + INSET, top), names, scale, svg);
        }
    }
}

impl PanelBar {
    fn draw(&self, (x, top): (f64, f64), names: f64, scale: f64, svg: &mut Svg) {
        let (left, middle) = (x + names, top + ROW / 2.0);
        let Spread { min, median, max } = self.value;
        let class = format!("bar {}", self.name.replace([' ', ','], "-"));
        svg.words((x, middle + 4.0), "", "start", &self.name);
        svg.shape((left, top + 6.0), (median * scale, ROW - 12.0), 2.0, &class);
        let [low, high] = [min, max].map(|value| left + value * scale);
        svg.rule((low, middle), (high, middle), "whisker");
        for end in [low, high] {
            svg.rule((end, middle - 4.0), (end, middle + 4.0), "whisker");
        }
        svg.words((high + 10.0, middle + 4.0), "", "start", &self.label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels(bars: Vec<PanelBar>) -> Panels {
        Panels {
            title: "Requests".into(),
            caption: vec!["A bar is a median.".into(), "A whisker is a spread.".into()],
            columns: 2,
            one_scale: true,
            panels: vec![Panel { title: "512 B <&>".into(), bars }],
        }
    }

    #[test]
    fn every_server_has_a_bar_and_the_caption_says_what_it_is() {
        let bar = |name: &str, median| PanelBar {
            name: name.into(),
            value: Spread { min: median, median, max: median },
            label: "1 k".into(),
        };
        let text = panels(vec![bar("afpa kernel", 2.0), bar("nginx", 1.0)]).draw().unwrap();
        assert_eq!(text.matches("class=\"bar ").count(), 2);
        assert!(text.contains("bar afpa-kernel") && text.contains("A whisker is a spread."));
        assert!(text.contains("512 B &lt;&amp;&gt;") && text.ends_with("</svg>\n"));
        assert!(panels(Vec::new()).draw().is_none());
    }
}
