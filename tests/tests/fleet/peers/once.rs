//! Errors with pages, which the machine of the client has.

use super::*;

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
            format!("[[site.errors]]\nstatus = 404\nfile = \"{page}\"\nintercept = true\n");
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
