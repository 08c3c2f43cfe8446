//! Times, sizes and texts of nginx, in AFPA's spelling.

/// A time in milliseconds: `90`, `1h 30m`, `500ms`.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let (mut total, mut rest) = (0_u64, text.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let unit_end =
            behind.find(|c: char| c.is_ascii_digit() || c == ' ').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        let unit = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            "M" => 30 * 86_400_000,
            "y" => 365 * 86_400_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = behind.trim_start();
    }
    Some(total)
}

/// A time as AFPA writes it, if it lies between the two bounds, in milliseconds.
pub(crate) fn duration(text: &str, least: u64, most: u64) -> Option<String> {
    let time = milliseconds(text).filter(|time| (least..=most).contains(time))?;
    Some(match time {
        0 => "0s".to_owned(),
        time if time % 3_600_000 == 0 => format!("{}h", time / 3_600_000),
        time if time % 60_000 == 0 => format!("{}m", time / 60_000),
        time if time % 1000 == 0 => format!("{}s", time / 1000),
        time => format!("{time}ms"),
    })
}

/// A size in bytes: `512`, `16k`, `10m`, `1g`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// A size as AFPA writes it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or(format!("{bytes}B"), |(unit, name)| format!("{}{name}", bytes / unit))
}

/// A basic string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    // `${` begins a variable of AFPA's.
    for c in text.replace("${", "$${").chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A list of them.
pub(crate) fn list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

/// A table in one line.
pub(crate) fn table(pairs: &[(String, String)]) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let pairs = pairs.iter().map(|(name, value)| {
        let is_bare = !name.is_empty() && name.chars().all(bare);
        let name = if is_bare { name.clone() } else { quoted(name) };
        format!("{name} = {}", quoted(value))
    });
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

/// Whether a text has no variable of nginx.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.contains('$')
}

/// Whether a text is an address, or a network with its bits.
pub(crate) fn is_network(text: &str) -> bool {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse::<u8>().ok()),
        None => (text, Some(0)),
    };
    match (address.parse::<std::net::IpAddr>(), bits) {
        (Ok(std::net::IpAddr::V4(_)), Some(bits)) => bits <= 32,
        (Ok(std::net::IpAddr::V6(_)), Some(bits)) => bits <= 128,
        _ => false,
    }
}

/// A regular expression that means the same to AFPA, as it is written behind `~` or `~*`; the error says why not.
pub(crate) fn expression(text: &str, any_case: bool) -> Result<String, String> {
    let strange = ["&&", "--", "~~", "\\<", "\\>", "[["];
    // Character classes of POSIX mean the same.
    let without_named = text.replace("[[:", "[");
    if strange.iter().any(|part| without_named.contains(part)) {
        return Err("its regular expression means something else to AFPA".to_owned());
    }
    let built = regex::bytes::RegexBuilder::new(text)
        .unicode(false)
        .case_insensitive(any_case)
        .size_limit(200 << 10)
        .build();
    match built {
        Ok(_) => Ok(format!("{}{text}", if any_case { "~*" } else { "~" })),
        Err(_) => Err("AFPA has no such regular expression: it has no look-around and no \
                       back-references"
            .to_owned()),
    }
}
