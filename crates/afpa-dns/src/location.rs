//! Places on the earth as data of LOC records (RFC 1876).

const EQUATOR: u32 = 1 << 31;
/// Centimetres from the lowest altitude to that of the sea.
const SEA: i64 = 10_000_000;

/// Reads `52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m`, of which minutes, seconds and the last three may be missing.
pub(crate) fn read(words: &[&str]) -> Result<[u8; 16], String> {
    let mut words = words.iter().copied();
    let latitude = angle(&mut words, ["N", "S"], 90)?;
    let longitude = angle(&mut words, ["E", "W"], 180)?;
    let altitude = words.next().ok_or("the altitude is missing")?;
    let altitude = u32::try_from(centimetres(altitude)?.saturating_add(SEA));
    let altitude = altitude.map_err(|_| "the altitude is beyond what can be written")?;
    let mut sizes = [0x12, 0x16, 0x13];
    for size in &mut sizes {
        if let Some(word) = words.next() {
            *size = precision(centimetres(word)?)?;
        }
    }
    if let Some(word) = words.next() {
        return Err(format!("{word} is too much"));
    }
    let mut out = [0; 16];
    out[1..4].copy_from_slice(&sizes);
    let (numbers, _) = out[4..].as_chunks_mut::<4>();
    for (place, number) in numbers.iter_mut().zip([latitude, longitude, altitude]) {
        *place = number.to_be_bytes();
    }
    Ok(out)
}

/// Thousandths of a second of arc from the equator or the meridian.
fn angle<'w>(
    words: &mut impl Iterator<Item = &'w str>,
    [positive, negative]: [&str; 2],
    most: u32,
) -> Result<u32, String> {
    let missing = || format!("{positive} or {negative} is missing");
    let mut total = 0_u32;
    for (index, unit) in [3_600_000, 60_000, 1000].into_iter().enumerate() {
        let word = words.next().ok_or_else(missing)?;
        if let Some(found) = direction(word, positive, negative, total).filter(|_| index > 0) {
            return within(found, total, most);
        }
        let wrong = || format!("{word} is no part of an angle");
        let part = match index {
            2 => u32::try_from(thousandths(word).ok_or_else(wrong)?).map_err(|_| wrong())?,
            _ => word.parse::<u32>().map_err(|_| wrong())?.checked_mul(unit).ok_or_else(wrong)?,
        };
        if index > 0 && part >= unit * 60 {
            return Err(wrong());
        }
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    let word = words.next().ok_or_else(missing)?;
    let found = direction(word, positive, negative, total).ok_or_else(missing)?;
    within(found, total, most)
}

fn direction(word: &str, positive: &str, negative: &str, total: u32) -> Option<u32> {
    if word.eq_ignore_ascii_case(positive) {
        return EQUATOR.checked_add(total);
    }
    word.eq_ignore_ascii_case(negative).then(|| EQUATOR.checked_sub(total)).flatten()
}

fn within(found: u32, total: u32, most: u32) -> Result<u32, String> {
    match total <= most * 3_600_000 {
        true => Ok(found),
        false => Err(format!("an angle is above {most} degrees")),
    }
}

/// A decimal with up to three places, in thousandths.
fn thousandths(word: &str) -> Option<u64> {
    let (whole, part) = word.split_once('.').unwrap_or((word, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > 3 || whole.is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

/// Metres, with `m` or without.
fn centimetres(word: &str) -> Result<i64, String> {
    let wrong = || format!("{word} is no length in metres, with two places at most");
    let number = word.strip_suffix(['m', 'M']).unwrap_or(word);
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let thousandths = thousandths(number).filter(|number| number % 10 == 0).ok_or_else(wrong)?;
    i64::try_from(thousandths / 10).map(|number| sign * number).map_err(|_| wrong())
}

/// A digit and a power of ten.
fn precision(mut centimetres: i64) -> Result<u8, String> {
    let mut power = 0;
    while centimetres >= 10 {
        centimetres /= 10;
        power += 1;
    }
    match (u8::try_from(centimetres), power) {
        (Ok(digit), 0..=9) => Ok(digit << 4 | power),
        _ => Err("a precision is at least 0 and below 90,000,000 m".to_owned()),
    }
}
