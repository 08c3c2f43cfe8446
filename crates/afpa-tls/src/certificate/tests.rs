use super::*;
use crate::testing::Authority;

const DAY: i64 = 24 * 3600;

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_secs()).unwrap()
}

fn read(chain: &str, key: &str) -> Result<Certificate, CertificateError> {
    Certificate::read(chain.as_bytes(), key.as_bytes(), None)
}

#[test]
fn a_chain_and_its_key_are_read_and_nothing_is_remarked() {
    let authority = Authority::new("Root");
    let (own, key) = authority.issue(&["www.example.org", "*.a.example", "192.0.2.1"]);
    let certificate = read(&format!("{own}{}", authority.pem), &key).unwrap();
    assert_eq!(certificate.remarks(now()), []);
    for (host, covered) in [
        ("www.example.org", true),
        ("WWW.Example.Org", true),
        ("example.org", false),
        ("x.a.example", true),
        ("a.example", false),
        (".a.example", false),
        ("y.x.a.example", false),
        ("192.0.2.1", true),
        ("192.0.2.2", false),
        ("[2001:db8::1]", false),
    ] {
        assert_eq!(certificate.covers(host), covered, "{host}");
    }
}

#[test]
fn a_key_must_fit_the_first_certificate() {
    let authority = Authority::new("Root");
    let (own, key) = authority.issue(&["a"]);
    let (_, other) = authority.issue(&["b"]);
    assert_eq!(read(&own, &other).unwrap_err(), CertificateError::Mismatch);
    let reversed = format!("{}{own}", authority.pem);
    assert_eq!(read(&reversed, &key).unwrap_err(), CertificateError::Order(2));
}

#[test]
fn what_is_missing_or_encrypted_is_told_apart() {
    let (own, key) = Authority::new("Root").issue(&["a"]);
    assert_eq!(read(&key, &key).unwrap_err(), CertificateError::NoCertificate);
    assert_eq!(read(&own, &own).unwrap_err(), CertificateError::NoKey);
    assert_eq!(read("", "").unwrap_err(), CertificateError::NoCertificate);
    for encrypted in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
    ] {
        assert_eq!(read(&own, encrypted).unwrap_err(), CertificateError::EncryptedKey);
    }
    let damaged = own.replace("MII", "M!I");
    assert!(matches!(read(&damaged, &key), Err(CertificateError::Pem(_))));
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let wrong = read(garbage, &key).unwrap_err();
    assert!(matches!(wrong, CertificateError::Malformed(1, _) | CertificateError::Mismatch));
    for error in [wrong, CertificateError::EncryptedKey, CertificateError::NoKey] {
        assert!(!error.remedy().is_empty());
    }
}

#[test]
fn time_and_chain_are_remarked() {
    let authority = Authority::new("Root");
    let (own, key) = authority.issue(&["a"]);
    let alone = read(&own, &key).unwrap();
    assert_eq!(alone.remarks(now()), [Remark::Incomplete("CN=Root".to_owned())]);
    let strange = read(&format!("{own}{}", Authority::new("Other").pem), &key).unwrap();
    assert_eq!(strange.remarks(now()), [Remark::Order(2)]);
    let (own, key) = authority.issue_with(&["a"], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 3, 1);
    });
    let short = read(&format!("{own}{}", authority.pem), &key).unwrap();
    let end = short.not_after();
    assert_eq!(short.remarks(end + 5), [Remark::Expired(5)]);
    assert_eq!(short.remarks(end - DAY), [Remark::ExpiresSoon(DAY)]);
    assert_eq!(short.remarks(end - 20 * DAY), []);
    assert_eq!(short.remarks(end - 90 * DAY), [Remark::NotYetValid]);
}

#[test]
fn a_subject_is_written_as_the_rfc_writes_it() {
    let (own, _) = Authority::new("Root").issue(&["a"]);
    let chain = read_chain(own.as_bytes()).unwrap();
    let subject = subject(&chain[0]).unwrap();
    assert!(subject.contains(r"O=Ex\C3\A4mple"), "{subject}");
    assert!(subject.contains(r"CN=Cora\, Inc."), "{subject}");
    assert_eq!(super::subject(b"nonsense"), None);
}

#[test]
fn a_staple_is_a_whole_response_that_says_successful() {
    let authority = Authority::new("Root");
    let (own, key) = authority.issue(&["a.example"]);
    let read = |staple: &[u8]| {
        Certificate::read(own.as_bytes(), key.as_bytes(), Some(staple.to_vec())).map(|_| ())
    };
    assert_eq!(read(&[0x30, 5, 0x0a, 1, 0, 0xa0, 0]), Ok(()));
    let long = [&[0x30, 0x82, 1, 4, 0x0a, 1, 0, 0xa0][..], &[0; 256]].concat();
    assert_eq!(read(&long), Ok(()));
    let middle = [&[0x30, 0x81, 204, 0x0a, 1, 0, 0xa0][..], &[0; 200]].concat();
    assert_eq!(read(&middle), Ok(()));
    for wrong in [
        &b""[..],
        b"<html>404",
        b"-----BEGIN OCSP RESPONSE-----",
        &[0x30, 3, 0x0a, 1, 6],
        &[0x30, 5, 0x0a, 1, 6, 0xa0, 0],
        &[0x30, 0x80, 0x0a, 1, 0, 0xa0, 0],
        &long[..long.len() - 1],
        &[&long[..], &[0]].concat(),
    ] {
        assert_eq!(read(wrong), Err(CertificateError::Staple), "{wrong:?}");
    }
}
