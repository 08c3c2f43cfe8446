//! Accept-Encoding (RFC 9110, 12.5.3).

/// The coding to send of those `available`, which stand in the server's order of preference.
pub(super) fn choose(accept: Option<&str>, available: &[&'static str]) -> &'static str {
    let Some(accept) = accept else { return "identity" };
    let mut best = ("identity", 0);
    for coding in available {
        let quality = quality(accept, coding);
        if quality > best.1 {
            best = (coding, quality);
        }
    }
    // "*" stands for identity too; a client that does not name it at all prefers any other.
    if quality(accept, "identity") > best.1 { "identity" } else { best.0 }
}

/// The quality given to `coding`, in thousandths.
fn quality(accept: &str, coding: &str) -> u32 {
    let mut any = 0;
    for item in accept.split(',') {
        let (name, parameter) = item.split_once(';').unwrap_or((item, "q=1"));
        let name = name.trim().to_ascii_lowercase();
        let digits = parameter.trim().trim_start_matches(['q', 'Q']).trim_start_matches('=');
        let quality = digits.trim().parse::<f64>().map_or(0, |q| (q * 1000.0).round() as u32);
        if name == coding || (coding == "gzip" && name == "x-gzip") {
            return quality;
        }
        if name == "*" {
            any = quality;
        }
    }
    any
}
