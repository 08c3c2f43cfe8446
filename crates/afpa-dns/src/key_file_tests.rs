use super::*;

const SECRET: &str = "AAAAAAAAAAAAAAAAAAAAAA==";
const OTHER: &str = "BBBBBBBBBBBBBBBBBBBBBA==";

fn read(text: &str, name: &str) -> Result<Vec<u8>, KeyFileError> {
    let name = Name::parse(name, &Name::root()).expect("a name");
    secret(text, &name, Algorithm::Sha256)
}

fn of_bind(name: &str, secret: &str) -> String {
    format!("key \"{name}\" {{\n\talgorithm hmac-sha256;\n\tsecret \"{secret}\";\n}};\n")
}

#[test]
fn secrets_are_read_from_the_files_of_others() {
    let keymgr = "# hmac-sha256:k:AAAA\nkey:\n  - id: k\n    algorithm: hmac-sha256\n    secret: ";
    for text in [
        format!("{SECRET}\n"),
        format!("# the secret of the second\n{SECRET} # base64\n"),
        of_bind("k", SECRET),
        format!("key K. {{ algorithm HMAC-SHA256.; secret {SECRET}; }};"),
        format!("{keymgr}{SECRET}\n"),
        format!("key:\n\tname: \"k\"\n\talgorithm: hmac-sha256\n\tsecret: \"{SECRET}\"\n"),
        format!("server 192.0.2.1 {{ keys {{ secret; }}; }};\n{}", of_bind("k", SECRET)),
        format!("{keymgr}{SECRET}\nremote:\n  - id: second\n    key: secret\n"),
        format!("secret: {SECRET}"),
    ] {
        assert_eq!(read(&text, "k"), Ok(vec![0; 16]), "{text}");
    }
}

#[test]
fn base64_may_look_like_a_comment() {
    let odd = "//8AAAAAAAAAAAAAAAAAAA==";
    let bytes = STANDARD.decode(odd).expect("base64");
    for text in
        [format!("{odd}\n"), format!("key:\n - id: k\n   secret: {odd}\n"), of_bind("k", odd)]
    {
        assert_eq!(read(&text, "k").as_ref(), Ok(&bytes), "{text}");
    }
}

#[test]
fn the_word_secret_may_stand_anywhere() {
    for name in [
        "ns2-secret-abcdefabcdefabcdefabcd",
        "secret-xfr",
        "secret",
        "ns2.secret",
        "key",
        "algorithm",
    ] {
        let nsd = format!("key:\n  name: {name}\n  algorithm: hmac-sha256\n  secret: {SECRET}\n");
        for text in [
            of_bind(name, SECRET),
            of_bind(name, SECRET).replace('"', ""),
            format!("// the secret of the second\n{}", of_bind(name, SECRET)),
            format!("/* secret {OTHER} */{}", of_bind(name, SECRET)),
            of_bind(name, SECRET).replace("};", "}; # secret of"),
            nsd,
        ] {
            assert_eq!(read(&text, name), Ok(vec![0; 16]), "{text}");
        }
    }
}

#[test]
fn the_key_of_the_name_is_taken_of_several() {
    let two = of_bind("one", OTHER) + &of_bind("two", SECRET);
    assert_eq!(read(&two, "two"), Ok(vec![0; 16]));
    assert_eq!(read(&two, "three"), Err(KeyFileError::OtherName("one".into())));
    let twice = of_bind("k", OTHER) + &of_bind("k", SECRET);
    assert_eq!(read(&twice, "k"), Err(KeyFileError::Several));
    assert_eq!(read(&format!("secret {SECRET}; secret {OTHER};"), "k"), Err(KeyFileError::Several));
    let knot = format!(
        "key:\n - id: one\n   algorithm: hmac-sha512\n   secret: {OTHER}\n - id: k\n   secret: {SECRET}\n"
    );
    assert_eq!(read(&knot, "k"), Ok(vec![0; 16]));
    assert_eq!(read(&knot, "one"), Err(KeyFileError::OtherAlgorithm("hmac-sha512".into())));
}

#[test]
fn what_is_not_surely_the_secret_is_refused() {
    for text in [
        "",
        "AAAA",
        "secret",
        "not base64",
        // A secret of two lines, whose first one is base64, too.
        &format!("{}\n{OTHER}\n", SECRET.replace('=', "A")),
        // The name is base64 of 24 bytes.
        &of_bind("ns2-secret-abcdefabcdefabcdefabcdefabcdefab", ""),
        &format!("{SECRET} of the second"),
        &of_bind("k", "AAAA"),
        "key k { algorithm hmac-sha256; };",
        &format!("# {SECRET}"),
        &format!("the-secret {SECRET}"),
    ] {
        let name = "ns2-secret-abcdefabcdefabcdefabcdefabcdefab";
        let found = if text.contains("\"k\"") { read(text, "k") } else { read(text, name) };
        assert_eq!(found, Err(KeyFileError::NoSecret), "{text}");
    }
    for text in [format!("secret \"{SECRET}"), format!("/* {SECRET}")] {
        assert_eq!(read(&text, "k"), Err(KeyFileError::Endless));
    }
    let other = of_bind("k", SECRET).replace("sha256", "sha256-128");
    assert_eq!(read(&other, "k"), Err(KeyFileError::OtherAlgorithm("hmac-sha256-128".into())));
}
