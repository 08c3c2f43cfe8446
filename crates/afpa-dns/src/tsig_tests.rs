use super::*;
use crate::query::{Parsed, Query};

const NOW: u64 = 1_700_000_000;

fn key(name: &str, algorithm: Algorithm, secret: u8) -> Key {
    Key::new(&Name::parse(name, &Name::root()).expect("a name"), algorithm, &[secret; 32])
}

fn question() -> Vec<u8> {
    b"\xab\xcd\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\xfc\x00\x01"
        .to_vec()
}

fn signed(key: &Key, now: u64) -> Vec<u8> {
    let mut message = question();
    Signer::of(&Arc::new(key.clone())).sign(&mut message, 0, now);
    message
}

fn check(keys: &Keys, message: &[u8], now: u64) -> Checked {
    let Parsed::Query(query) = Query::parse(message) else { panic!("no question") };
    keys.check(message, query.signature.expect("signed"), now)
}

fn error(checked: &Checked) -> u16 {
    match checked {
        Checked::Good(_) => 0,
        Checked::Bad(signer) => signer.error.as_ref().map_or(0, |stamp| stamp.error),
        Checked::Malformed => 1,
    }
}

/// The bytes that RFC 8945 section 4.3 has hashed, written out.
#[test]
fn a_signature_is_the_one_of_the_rfc() {
    let own = key("Key.example.", Algorithm::Sha256, 7);
    let message = signed(&own, NOW);
    let mac = message.get(message.len() - 38..message.len() - 6).expect("a MAC");
    let mut digested = question();
    digested.extend(b"\x03key\x07example\x00\x00\xff\x00\x00\x00\x00\x0bhmac-sha256\x00");
    digested.extend(&NOW.to_be_bytes()[2..]);
    digested.extend([1, 44, 0, 0, 0, 0]);
    let right = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]), &digested);
    assert_eq!(mac, right.as_ref());
    assert_eq!(message[10..12], [0, 1]);
}

#[test]
fn each_fault_has_its_code() {
    let own = key("key.example.", Algorithm::Sha512, 7);
    let keys: Keys = [own.clone()].into_iter().collect();
    assert_eq!(error(&check(&keys, &signed(&own, NOW), NOW)), 0);
    assert_eq!(error(&check(&Keys::default(), &signed(&own, NOW), NOW)), BADKEY);
    for other in [key("key.example.", Algorithm::Sha256, 7), key("other.", Algorithm::Sha512, 7)] {
        assert_eq!(error(&check(&keys, &signed(&other, NOW), NOW)), BADKEY);
    }
    let other = key("key.example.", Algorithm::Sha512, 8);
    assert_eq!(error(&check(&keys, &signed(&other, NOW), NOW)), BADSIG);
    for (now, expected) in [(NOW + 300, 0), (NOW + 301, BADTIME), (NOW - 301, BADTIME)] {
        assert_eq!(error(&check(&keys, &signed(&own, NOW), now)), expected);
    }
    // Each bit counts, but that of the id: a forwarder may change it.
    let whole = signed(&own, NOW);
    for at in 2..question().len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        if let Parsed::Query(query) = Query::parse(&changed)
            && let Some(signature) = query.signature
        {
            assert_ne!(error(&keys.check(&changed, signature, NOW)), 0, "byte {at}");
        }
    }
    for cut in 0..whole.len() {
        assert!(!matches!(Query::parse(&whole[..cut]), Parsed::Query(_)), "cut at {cut}");
    }
}

#[test]
fn an_answer_is_accepted_from_who_has_the_key_alone() {
    let own = Arc::new(key("key.example.", Algorithm::Sha256, 7));
    let keys: Keys = [(*own).clone()].into_iter().collect();
    let mut asker = Signer::of(&own);
    let mut message = question();
    asker.sign(&mut message, 0, NOW);
    let Checked::Good(mut signer) = check(&keys, &message, NOW) else { panic!("refused") };
    assert!(signer.has(&own) && !signer.has(&key("other.", Algorithm::Sha256, 7)));
    let mut answer = b"before".to_vec();
    answer.extend(question());
    answer[8] |= 0x80;
    signer.sign(&mut answer, 6, NOW);
    let answer = &answer[6..];
    let at = SignedAt::find(answer).expect("signed");
    assert!(asker.accepts(answer, at, NOW) && !asker.accepts(answer, at, NOW + 400));
    assert!(!Signer::of(&own).accepts(answer, at, NOW), "the answer to another question");
    let mut forged = answer.to_vec();
    forged[3] ^= 1;
    assert!(!asker.accepts(&forged, at, NOW));
    let Checked::Bad(mut unsure) = check(&Keys::default(), &message, NOW) else { panic!() };
    let mut told = question();
    unsure.sign(&mut told, 0, NOW);
    let at = SignedAt::find(&told).expect("signed");
    assert!(!asker.accepts(&told, at, NOW), "an empty signature");
    let record = Record::read(&told, at.at).expect("a record");
    assert_eq!((record.mac.len(), record.stamp.error), (0, BADKEY));
}
