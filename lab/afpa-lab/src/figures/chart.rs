//! A chart of lines over a logarithmic axis, one line a server, whiskers from lowest to highest.

use super::svg::{Stroke, Svg};
use crate::stats::Spread;
use crate::units::number;

/// The content of a chart.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) subtitle: String,
    /// Names of the axes.
    pub(super) axes: [String; 2],
    /// Unit of the values, for the labels of the vertical axis.
    pub(super) unit: &'static str,
    /// Label of a place on the horizontal axis.
    pub(super) label: fn(f64) -> String,
    pub(super) series: Vec<Series>,
}

/// One server's line.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, Spread)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 660.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 396.0;

impl Chart {
    /// Draws it; `None` when there is no line to draw.
    pub(super) fn draw(mut self) -> Option<String> {
        self.series.retain(|series| series.points.len() > 1);
        let scale = Scale::of(&self.series)?;
        let mut svg = Svg::new(WIDTH, HEIGHT, &self.title);
        svg.words((28.0, 30.0), "title", "start", &self.title);
        svg.words((28.0, 50.0), "soft small", "start", &self.subtitle);
        self.draw_axes(&scale, &mut svg);
        for series in &self.series {
            draw_series(series, &scale, &mut svg);
        }
        self.draw_legend(&mut svg);
        Some(svg.finish())
    }

    fn draw_axes(&self, scale: &Scale, svg: &mut Svg) {
        for x in scale.places() {
            let at = scale.x(x);
            svg.rule((at, TOP), (at, BOTTOM), "grid");
            svg.words((at, BOTTOM + 18.0), "soft small", "middle", &(self.label)(x));
        }
        for value in scale.steps() {
            let at = scale.y(value);
            svg.rule((LEFT, at), (RIGHT, at), "grid");
            svg.words((LEFT - 8.0, at + 4.0), "soft small", "end", &number(value, self.unit));
        }
        svg.rule((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
        svg.rule((LEFT, TOP), (LEFT, BOTTOM), "axis");
        let [across, up] = &self.axes;
        svg.words(((LEFT + RIGHT) / 2.0, BOTTOM + 40.0), "soft", "middle", across);
        svg.words((28.0, TOP - 6.0), "soft small", "start", up);
    }

    /// Draws the names in the order of the lines' left ends, the highest first.
    fn draw_legend(&mut self, svg: &mut Svg) {
        let first = |series: &Series| series.points[0].1.median;
        self.series.sort_by(|one, other| first(other).total_cmp(&first(one)));
        for (index, series) in self.series.iter().enumerate() {
            let y = TOP + 8.0 + 16.5 * index as f64;
            let stroke = Stroke::of(&series.name);
            svg.line(&[(RIGHT + 18.0, y), (RIGHT + 42.0, y)], &stroke);
            svg.words((RIGHT + 50.0, y + 4.0), "small", "start", &series.name);
        }
    }
}

fn draw_series(series: &Series, scale: &Scale, svg: &mut Svg) {
    let stroke = Stroke::of(&series.name);
    let at = |(x, spread): &(f64, Spread)| (scale.x(*x), scale.y(spread.median));
    let points: Vec<(f64, f64)> = series.points.iter().map(at).collect();
    svg.line(&points, &stroke);
    for ((x, spread), point) in series.points.iter().zip(&points) {
        let x = scale.x(*x);
        let whisker = Stroke { width: 1.0, dashed: false, ..stroke };
        svg.line(&[(x, scale.y(spread.min)), (x, scale.y(spread.max))], &whisker);
        svg.dot(*point, stroke.width + 0.6, stroke.colour);
    }
}

/// Both axes are logarithmic: sizes double, and servers are tens of times apart.
struct Scale {
    x: [f64; 2],
    y: [f64; 2],
    places: Vec<f64>,
}

impl Scale {
    fn of(series: &[Series]) -> Option<Self> {
        let points = || series.iter().flat_map(|series| &series.points);
        let mut places: Vec<f64> = points().map(|(x, _)| *x).filter(|x| *x > 0.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let lows = points().map(|(_, spread)| spread.min).filter(|low| *low > 0.0);
        let low = lows.min_by(f64::total_cmp)?;
        let high = points().map(|(_, spread)| spread.max).max_by(f64::total_cmp)?;
        let x = [*places.first()?, *places.last()?];
        Some(Self { x, y: [low / 1.15, high * 1.15], places })
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + 14.0 + share(value, self.x) * (RIGHT - LEFT - 28.0)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - share(value.max(self.y[0]), self.y) * (BOTTOM - TOP)
    }

    fn places(&self) -> Vec<f64> {
        self.places.clone()
    }

    /// 1, 2 and 5 times the powers of ten; only these powers when there are many.
    fn steps(&self) -> Vec<f64> {
        let decades = (self.y[1] / self.y[0]).log10();
        let factors: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let lowest = self.y[0].log10().floor() as i32;
        let powers = (lowest..=lowest + decades.ceil() as i32 + 1).map(|power| 10_f64.powi(power));
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * power))
            .filter(|value| (self.y[0]..=self.y[1]).contains(value))
            .collect()
    }
}

/// Where a value lies between two others, on a logarithmic scale.
fn share(value: f64, [low, high]: [f64; 2]) -> f64 {
    if high <= low { 0.5 } else { (value / low).ln() / (high / low).ln() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(median: f64) -> Spread {
        Spread { min: median * 0.9, median, max: median * 1.1 }
    }

    fn chart(series: Vec<Series>) -> Chart {
        Chart {
            title: "Requests".into(),
            subtitle: String::new(),
            axes: ["size".into(), "requests/s".into()],
            unit: "/s",
            label: |x| format!("{x} B"),
            series,
        }
    }

    #[test]
    fn every_line_and_label_is_there() {
        let points = |factor: f64| vec![(64.0, spread(1e5 * factor)), (4096.0, spread(1e4))];
        let series = |name: &str, factor| Series { name: name.into(), points: points(factor) };
        let text = chart(vec![series("nginx", 1.0), series("afpa-kernel", 9.0)]).draw().unwrap();
        for expected in ["nginx", "afpa-kernel", "64 B", "4096 B", "100 k/s"] {
            assert!(text.contains(expected), "{expected} is not in the figure");
        }
        assert!(text.find(">afpa-kernel<").unwrap() < text.find(">nginx<").unwrap());
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn one_point_is_no_line() {
        let lonely = Series { name: "nginx".into(), points: vec![(64.0, spread(1.0))] };
        assert!(chart(vec![lonely]).draw().is_none());
        assert!(chart(Vec::new()).draw().is_none());
    }

    #[test]
    fn a_scale_maps_its_ends_to_the_ends() {
        assert_eq!(share(10.0, [10.0, 1000.0]), 0.0);
        assert!((share(100.0, [10.0, 1000.0]) - 0.5).abs() < 1e-12);
        assert_eq!(share(1000.0, [10.0, 1000.0]), 1.0);
    }
}
