//! A small writer of SVG: the parts that the lab's figures are made of.

use std::fmt::Write;

/// A picture that grows.
pub(super) struct Svg {
    text: String,
}

const STYLE: &str = "text{font:13px 'DejaVu Sans',system-ui,sans-serif;fill:#23262b}\
    .soft{fill:#6b6f76}.title{font-size:18px;font-weight:650}.small{font-size:11px}\
    .grid{stroke:#e4e0d6;stroke-width:1}.axis{stroke:#8a8d93;stroke-width:1}";

impl Svg {
    /// An empty picture; `about` is its description for people who cannot see it.
    pub(super) fn new(width: f64, height: f64, about: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">\
             <style>{STYLE}</style><rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" \
             fill=\"#fdfcfa\"/>\n",
            escape(about)
        );
        Self { text }
    }

    /// An empty picture with a style sheet of its own, which has a class `ground`.
    pub(super) fn styled(width: f64, height: f64, about: &str, style: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             role=\"img\" aria-label=\"{}\"><style>{style}</style>\n",
            escape(about)
        );
        let mut svg = Self { text };
        svg.shape((0.0, 0.0), (width, height), 10.0, "ground");
        svg
    }

    /// The finished file.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// Words; `anchor` is start, middle or end.
    pub(super) fn words(&mut self, at: (f64, f64), class: &str, anchor: &str, words: &str) {
        self.add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escape(words)
        ));
    }

    /// A line of a class of the style sheet.
    pub(super) fn rule(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.add(format_args!(
            "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through points.
    pub(super) fn line(&mut self, points: &[(f64, f64)], stroke: &Stroke) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        self.add(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>",
            stroke.colour,
            stroke.width,
            if stroke.dashed { " stroke-dasharray=\"5 4\"" } else { "" }
        ));
    }

    /// A filled dot.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, colour: &str) {
        self.add(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" fill=\"{colour}\"/>",
            at.0, at.1
        ));
    }

    /// A filled rectangle.
    pub(super) fn bar(&mut self, at: (f64, f64), size: (f64, f64), colour: &str) {
        self.add(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"1.5\" \
             fill=\"{colour}\"/>",
            at.0,
            at.1,
            size.0.max(0.0),
            size.1.max(0.0)
        ));
    }

    /// A rectangle of a class of the style sheet, with rounded corners.
    pub(super) fn shape(&mut self, at: (f64, f64), size: (f64, f64), radius: f64, class: &str) {
        self.add(format_args!(
            "<rect class=\"{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             rx=\"{radius:.0}\"/>",
            escape(class),
            at.0,
            at.1,
            size.0.max(0.0),
            size.1.max(0.0)
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{element}");
    }
}

/// How a line looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) dashed: bool,
}

impl Stroke {
    /// AFPA stands out, peers have a colour each, the papers' architectures are dashed.
    pub(super) fn of(server: &str) -> Self {
        let known = COLOURS.iter().find(|(name, _)| *name == server);
        let colour = known.map_or(OTHERS[other(server)], |(_, colour)| colour);
        let afpa = server.starts_with("afpa");
        let architecture = ARCHITECTURES.iter().any(|name| server.starts_with(name));
        Self { colour, width: if afpa { 2.8 } else { 1.6 }, dashed: architecture }
    }
}

const ARCHITECTURES: &[&str] = &["howl", "mp", "thread", "sped", "amped", "io-uring"];
const COLOURS: &[(&str, &str)] = &[
    ("afpa-kernel", "#d9431e"),
    ("afpa-socketless", "#8c1d40"),
    ("afpa", "#f08a4b"),
    ("afpa-attach", "#a32a6d"),
    ("afpa-copy", "#c9a227"),
    ("afpa-sendfile", "#8a5a2b"),
    ("nginx", "#2f8f4e"),
    ("h2o", "#2f6db5"),
    ("apache-prefork", "#7a4fb0"),
    ("apache-event", "#b07fd8"),
    ("lighttpd", "#17a3a3"),
    ("caddy", "#5aa9e6"),
    ("haproxy", "#6b8e23"),
    ("varnish", "#9c6b4e"),
    ("howl", "#222222"),
    ("mp", "#7d7d7d"),
    ("thread-pool", "#5a6a7a"),
    ("thread-per-request", "#a0a0a0"),
    ("sped", "#3d4f8a"),
    ("amped", "#8a7a5a"),
    ("io-uring", "#4a8a7a"),
];
const OTHERS: [&str; 4] = ["#446688", "#886644", "#668844", "#884466"];

/// The same colour for the same name, each time.
fn other(server: &str) -> usize {
    server.bytes().map(usize::from).sum::<usize>() % OTHERS.len()
}

/// For text and attributes of XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(escape("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
        let mut svg = Svg::new(10.0, 10.0, "\"><script>");
        svg.words((0.0, 0.0), "soft", "start", "<x>");
        assert!(!svg.finish().contains("<script>"));
    }

    #[test]
    fn every_server_has_a_stroke_and_afpa_stands_out() {
        assert!(Stroke::of("afpa-kernel").width > Stroke::of("nginx").width);
        assert!(Stroke::of("thread-pool:pool=6").dashed && !Stroke::of("varnish").dashed);
        assert_eq!(Stroke::of("somebody").colour, Stroke::of("somebody").colour);
    }
}
