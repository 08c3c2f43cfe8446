use rustls::crypto::cipher::InboundOpaqueMessage;

use super::*;
use crate::machine::RECORD;

fn made(algorithm: &dyn Tls13AeadAlgorithm) -> (Box<dyn MessageEncrypter>, Arc<SendingKey>) {
    let key = AeadKey::from([7; 32]);
    let (encrypter, shared) = watch(|| algorithm.encrypter(key, Iv::new([3; 12])));
    (encrypter, shared.expect("a key was made"))
}

/// The content of record `number`, as the suites of aws-lc-rs decrypt it.
fn opened(algorithm: &dyn Tls13AeadAlgorithm, record: &[u8], number: u64) -> Option<Vec<u8>> {
    let mut decrypter = algorithm.decrypter(AeadKey::from([7; 32]), Iv::new([3; 12]));
    let (head, sealed) = record.split_at_checked(HEAD)?;
    assert_eq!(head, [&[23, 3, 3][..], &(sealed.len() as u16).to_be_bytes()].concat());
    let mut sealed = sealed.to_vec();
    let (kind, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
    let plain = decrypter.decrypt(InboundOpaqueMessage::new(kind, version, &mut sealed), number);
    let plain = plain.ok()?;
    assert_eq!(plain.typ, ContentType::ApplicationData);
    Some(plain.payload.to_vec())
}

#[test]
fn rustls_and_the_machine_use_each_number_once_and_are_understood() {
    // The key of 32 bytes fits two of them; that of AES-128 is tried in whole connections.
    for suite in suites().iter().filter_map(SupportedCipherSuite::tls13) {
        if suite.aead_alg.key_len() != 32 {
            continue;
        }
        let (mut rustls, shared) = made(suite.aead_alg);
        for number in 0..40_u64 {
            let content = vec![number as u8; (number * number * 10) as usize % RECORD + 1];
            let record = match number % 3 {
                0 => {
                    let message = OutboundPlainMessage {
                        typ: ContentType::ApplicationData,
                        version: ProtocolVersion::TLSv1_2,
                        payload: content[..].into(),
                    };
                    // Its own number is another one.
                    rustls.encrypt(message, 1000).unwrap().encode()
                }
                1 => {
                    let mut out = b"before".to_vec();
                    shared.seal_to(&content, &mut out).unwrap();
                    assert!(out.starts_with(b"before"));
                    out.split_off(6)
                }
                _ => {
                    let mut record = vec![0xee; HEAD + content.len() + TAIL];
                    record[HEAD..HEAD + content.len()].copy_from_slice(&content);
                    shared.seal(&mut record).unwrap();
                    record
                }
            };
            assert_eq!(opened(suite.aead_alg, &record, number), Some(content), "{number}");
            assert_eq!(opened(suite.aead_alg, &record, number + 1), None);
        }
    }
}

#[test]
fn what_is_no_record_is_not_sealed_and_uses_no_number() {
    let suites = suites();
    let suite = suites.iter().filter_map(SupportedCipherSuite::tls13).next_back().unwrap();
    let (_, shared) = made(suite.aead_alg);
    for length in 0..HEAD + TAIL {
        assert_eq!(shared.seal(&mut vec![0; length]), Err(NotSealed), "{length}");
    }
    assert_eq!(shared.next.load(Ordering::Relaxed), 0);
    assert!(!shared.is_used_up(10) && shared.is_used_up(200));
}

#[test]
fn a_key_is_found_by_whoever_had_it_made_and_by_nobody_later() {
    let suites = suites();
    let suite = suites.iter().filter_map(SupportedCipherSuite::tls13).next_back().unwrap();
    let (first, second) = (made(suite.aead_alg).1, made(suite.aead_alg).1);
    assert!(!Arc::ptr_eq(&first, &second));
    drop(suite.aead_alg.encrypter(AeadKey::from([7; 32]), Iv::new([3; 12])));
    assert!(watch(|| ()).1.is_none());
}
