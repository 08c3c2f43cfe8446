//! The zones that all name servers have: one with many names, and one with signatures.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use afpa_netlab::queries::{address, label};
use anyhow::{Context, Result, ensure};

/// Many names, without signatures.
pub(super) const PLAIN: &str = "plain.test";
pub(super) const MANY: u32 = 32_768;
/// Few names, with signatures.
pub(super) const SIGNED: &str = "signed.test";
pub(super) const FEW: u32 = 160;

/// Writes both to a folder that servers may read.
///
/// # Errors
///
/// When a file cannot be written, or the tools of ldns are missing.
pub(super) fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (zone, names) in [(PLAIN, MANY), (SIGNED, FEW)] {
        let path = folder.join(zone);
        fs::write(&path, text(zone, names)).with_context(|| path.display().to_string())?;
    }
    let key = tool(folder, "ldns-keygen", &["-a", "ECDSAP256SHA256", "-k", SIGNED])?;
    let key = key.lines().last().context("ldns-keygen names no key")?.trim().to_owned();
    let signed = format!("{SIGNED}.signed");
    let valid = ["-i", "20200101000000", "-e", "20370101000000"];
    tool(folder, "ldns-signzone", &[&valid[..], &["-f", &signed, SIGNED, &key]].concat())?;
    Ok(())
}

/// Two name servers with addresses of their own make answers as long as they are in many zones.
fn text(zone: &str, names: u32) -> String {
    let mut text = format!(
        "$ORIGIN {zone}.\n$TTL 3600\n@ IN SOA ns1 host.{zone}. 1 3600 600 86400 300\n@ IN NS ns1\n@ IN NS ns2\n\
         ns1 IN A 192.0.2.1\nns1 IN AAAA 2001:db8::1\nns2 IN A 192.0.2.2\n"
    );
    for number in 0..names {
        // A String takes everything.
        let _ = writeln!(text, "{} IN A {}", label(number), address(number));
    }
    text
}

fn tool(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.with_context(|| format!("{program} (Debian package ldnsutils)"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_its_names_with_their_addresses() {
        let text = text(PLAIN, 300);
        assert!(text.starts_with("$ORIGIN plain.test.\n"));
        assert!(text.contains("\nh00000000 IN A 10.0.0.0\n"));
        assert!(text.ends_with("\nh0000012b IN A 10.0.1.43\n"));
    }
}
