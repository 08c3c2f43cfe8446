//! Requests that wait for one another, errors with pages, and servers that no other machine may be asked for.

use std::io::Write as _;

use afpa_tests::codings::decode;

use super::*;

/// A server that says no length, and takes its time before its head and within its content.
fn in_chunks() -> Origin {
    Origin::start(|asked: &Asked| {
        let text = format!("{} {}", asked.target, asked.number);
        Reply::With(Box::new(move |stream| {
            // All of them wait for the head.
            thread::sleep(Duration::from_millis(300));
            let head = "HTTP/1.1 200 X\r\nCache-Control: max-age=3600\r\nConnection: close\r\n\
                        Transfer-Encoding: chunked\r\n\r\n4\r\none \r\n";
            let _written = stream.write_all(head.as_bytes());
            thread::sleep(Duration::from_millis(50));
            let rest = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
            let _written = stream.write_all(rest.as_bytes());
        }))
    })
}

#[test]
fn those_who_wait_for_an_answer_that_another_machine_keeps_get_it_from_there() {
    let Some(bed) = Bed::new() else { return };
    let origin = in_chunks();
    let machines = ["a", "b"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    for round in 0..16 {
        let target = format!("/{round}");
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let answer = machines[0].server.get(&target);
                    let wanted = format!("one {target} 1");
                    assert_eq!((answer.status, answer.text()), (200, &*wanted), "{answer:?}");
                    assert!(answer.field("AFPA-Answer").is_none(), "{answer:?}");
                });
            }
        });
        assert_eq!(origin.count(&target), 1, "{target}");
    }
    assert!(counts(&machines[0], "answered") > 0);
    assert_eq!((counts(&machines[0], "refused"), counts(&machines[0], "failed")), (0, 0));
}

#[test]
fn a_request_for_another_variant_asks_the_machine_that_has_it() {
    let Some(bed) = Bed::new() else { return };
    let origin = Origin::start(|asked: &Asked| {
        let language = asked.field("Accept-Language").unwrap_or_default();
        if language == "de" {
            thread::sleep(Duration::from_millis(400));
        }
        ok("Cache-Control: max-age=3600\r\nVary: Accept-Language\r\n", &language)
    });
    let machines = ["a", "b"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    let ask = |number: usize, target: &str, language: &str| {
        let lines = format!("Accept-Language: {language}\r\n");
        let answer = machines[number].server.connect().get_with(target, &lines);
        assert_eq!((answer.status, answer.text()), (200, language), "{answer:?}");
    };
    for round in 0..12 {
        let target = format!("/{round}");
        ask(1, &target, "fr");
        thread::scope(|scope| {
            scope.spawn(|| ask(0, &target, "de"));
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                ask(0, &target, "fr");
            });
        });
        assert_eq!(origin.count(&target), 2, "{target}");
    }
}

#[test]
fn a_compressed_answer_is_asked_for_and_compressed_once() {
    let Some(bed) = Bed::new() else { return };
    let text = "a line of text\n".repeat(300);
    let content = text.clone();
    let origin = Origin::start(move |_: &Asked| {
        crate::origin::ok(
            "Cache-Control: max-age=3600\r\nContent-Type: text/plain\r\nETag: \"v\"\r\n",
            &content,
        )
    });
    let machines = ["a", "b"].map(|name| bed.machine(name, &origin, "compress = true\n"));
    gather(&machines.each_ref());
    let mut asked = 0;
    for round in 0..12 {
        let target = format!("/{round}");
        let mut coded = Vec::new();
        for coding in [Some("gzip"), None, Some("br")] {
            for number in [0, 1, 0, 1] {
                let lines = coding.map(|coding| format!("Accept-Encoding: {coding}\r\n"));
                let lines = lines.unwrap_or_default();
                let answer = machines[number].server.connect().get_with(&target, &lines);
                assert_eq!((answer.status, answer.field("Content-Encoding")), (200, coding));
                assert_eq!(answer.field("Vary"), Some("Accept-Encoding"), "{answer:?}");
                assert_eq!(decode(coding, &answer.body), text.as_bytes());
                let tag = if coding.is_some() { "W/\"v\"" } else { "\"v\"" };
                assert_eq!(answer.field("ETag"), Some(tag), "{answer:?}");
                coded.push((coding, answer.body));
                let lines = format!("{lines}If-None-Match: {tag}\r\n");
                let current = machines[number].server.connect().get_with(&target, &lines);
                assert_eq!((current.status, current.field("ETag")), (304, Some(tag)));
                assert_eq!(current.field("Vary"), Some("Accept-Encoding"), "{current:?}");
            }
        }
        asked += origin.count(&target);
        coded.dedup();
        assert_eq!(coded.len(), 3, "both machines give the same bytes");
    }
    // Each machine by itself would ask 36 times; one that is not heard for a moment is not asked.
    assert!(asked < 54, "{asked}");
    for machine in &machines {
        assert!(counts(machine, "answered") > 0 && counts(machine, "refused") == 0);
    }
}

#[test]
fn an_error_that_a_page_replaces_is_asked_for_once() {
    let Some(bed) = Bed::new() else { return };
    let origin = Origin::start(|asked: &Asked| {
        let status = if asked.target.starts_with("/missing") { 404 } else { 200 };
        let message = crate::origin::message(status, "Cache-Control: max-age=60\r\n", "of it");
        Reply::Bytes(message)
    });
    let machines = ["a", "b"].map(|name| {
        let page = bed.folder.path().join(format!("page-{name}.html"));
        std::fs::write(&page, format!("page of {name}")).expect("written");
        let page = page.display();
        let errors =
            format!("[[site.errors]]\nstatus = [404]\nfile = \"{page}\"\nintercept = true\n");
        bed.machine(name, &origin, &errors)
    });
    gather(&machines.each_ref());
    for round in 0..16 {
        let target = format!("/missing/{round}");
        // It is not kept, so each request asks the server.
        for (number, name, asked) in [(0, "a", 1), (1, "b", 2), (0, "a", 3)] {
            let answer = machines[number].server.get(&target);
            let page = format!("page of {name}");
            assert_eq!((answer.status, answer.text()), (404, &*page), "{answer:?}");
            assert!(answer.field("AFPA-Answer").is_none(), "{answer:?}");
            assert_eq!(origin.count(&target), asked, "{target}");
        }
        let target = format!("/there/{round}");
        for machine in &machines {
            assert_eq!(machine.server.get(&target).text(), "of it");
        }
        assert_eq!(origin.count(&target), 1, "{target}");
    }
    for machine in &machines {
        assert_eq!((counts(machine, "refused"), counts(machine, "failed")), (0, 0));
    }
    assert!(counts(&machines[0], "answered") > 0);
}

#[test]
fn servers_that_are_told_of_connections_are_asked_by_the_machine_that_has_them() {
    let Some(bed) = Bed::new() else { return };
    // The first line that it gets is the header of the PROXY protocol: its target is the family.
    let origin = Origin::start(|_: &Asked| {
        let fields = "Cache-Control: max-age=3600\r\nConnection: close\r\n";
        Reply::Last(crate::origin::message(200, fields, "of it"))
    });
    let machines = ["a", "b"].map(|name| {
        let (peers, to) = (free_address(), origin.to());
        let more = format!(
            "peers = \"{peers}\"\n[[server_group]]\nname = \"app\"\nservers = [\"{to}\"]\n\
             proxy_protocol = \"v1\"\n"
        );
        let path = "[[site.path]]\nprefix = \"/told/\"\nto = \"app\"\n";
        bed.machine_of(name, &origin, (&more, path), "s", peers)
    });
    gather(&machines.each_ref());
    for round in 0..8 {
        for machine in &machines {
            assert_eq!(machine.server.get(&format!("/told/{round}")).text(), "of it");
        }
    }
    assert_eq!(origin.count("TCP4"), 16);
    for machine in &machines {
        assert_eq!((counts(machine, "answered"), counts(machine, "refused")), (0, 0));
    }
}
