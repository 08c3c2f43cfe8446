//! The names of a file: folders, links, stored codings and indexes, which come and go.

use std::fs;

use afpa_testkit::{Response, Tree, eventually_within};
use afpa_tests::codings::{decode, encode};

use crate::{SEEN, becomes, serve};

#[test]
fn a_file_removed_and_made_again_is_seen_each_time() {
    let tree = Tree::new();
    let server = serve(&tree);
    for round in 0..5 {
        becomes(&server, "/f.txt", 404, "");
        tree.file("f.txt", format!("round {round}"));
        becomes(&server, "/f.txt", 200, &format!("round {round}"));
        tree.remove("f.txt");
    }
    becomes(&server, "/f.txt", 404, "");
}

#[test]
fn a_renamed_folder_takes_its_files_along() {
    let tree = Tree::new();
    tree.file("a/b/f.txt", "in a");
    let server = serve(&tree);
    assert_eq!(server.get("/a/b/f.txt").text(), "in a");
    tree.rename("a", "z");
    becomes(&server, "/a/b/f.txt", 404, "");
    becomes(&server, "/z/b/f.txt", 200, "in a");
    tree.replace("z/b/f.txt", "changed in z");
    becomes(&server, "/z/b/f.txt", 200, "changed in z");
    // Another folder under the old name is another folder.
    tree.file("a/b/f.txt", "new a");
    becomes(&server, "/a/b/f.txt", 200, "new a");
    tree.replace("z/b/f.txt", "changed again");
    becomes(&server, "/z/b/f.txt", 200, "changed again");
    assert_eq!(server.get("/a/b/f.txt").text(), "new a");
}

#[test]
fn folders_that_change_places_change_what_is_served() {
    let tree = Tree::new();
    tree.file("blue/f.txt", "blue");
    tree.file("green/f.txt", "green");
    let server = serve(&tree);
    assert_eq!(server.get("/blue/f.txt").text(), "blue");
    assert_eq!(server.get("/green/f.txt").text(), "green");
    tree.rename("blue", "spare");
    tree.rename("green", "blue");
    tree.rename("spare", "green");
    becomes(&server, "/blue/f.txt", 200, "green");
    becomes(&server, "/green/f.txt", 200, "blue");
}

#[test]
fn a_new_file_in_a_new_folder_is_served_and_watched() {
    let tree = Tree::new();
    let server = serve(&tree);
    for round in 0..20 {
        // Asked for before: that it was missing must not be remembered too long.
        let target = format!("/{round}/new/er/f.txt");
        assert_eq!(server.get(&target).status, 404);
        let name = format!("{round}/new/er/f.txt");
        tree.file(&name, "made with its folders at once");
        becomes(&server, &target, 200, "made with its folders at once");
        tree.file(&name, "rewritten");
        becomes(&server, &target, 200, "rewritten");
    }
}

#[test]
fn a_tree_moved_in_from_outside_is_served_and_watched() {
    let tree = Tree::new();
    let server = serve(&tree);
    assert_eq!(server.get("/in/deep/f.txt").status, 404);
    let outside = tree.outside("ready/deep/f.txt", "moved in");
    let ready = outside.ancestors().nth(2).expect("ready");
    fs::rename(ready, tree.at("in")).expect("move in");
    becomes(&server, "/in/deep/f.txt", 200, "moved in");
    tree.replace("in/deep/f.txt", "changed");
    becomes(&server, "/in/deep/f.txt", 200, "changed");
    fs::rename(tree.at("in"), ready).expect("move out");
    becomes(&server, "/in/deep/f.txt", 404, "");
}

#[test]
fn a_link_turned_to_another_target_is_followed() {
    let tree = Tree::new();
    tree.file("releases/1/page.txt", "release 1");
    tree.file("releases/2/page.txt", "release 2");
    tree.link("current", "releases/1");
    tree.link("page.txt", "current/page.txt");
    let server = serve(&tree);
    assert_eq!(server.get("/current/page.txt").text(), "release 1");
    assert_eq!(server.get("/page.txt").text(), "release 1");
    tree.link("current", "releases/2");
    becomes(&server, "/current/page.txt", 200, "release 2");
    becomes(&server, "/page.txt", 200, "release 2");
    tree.replace("releases/2/page.txt", "release 2, mended");
    becomes(&server, "/current/page.txt", 200, "release 2, mended");
    becomes(&server, "/page.txt", 200, "release 2, mended");
    tree.file("releases/2/page.txt", "in place");
    becomes(&server, "/page.txt", 200, "in place");
    tree.remove("current");
    becomes(&server, "/page.txt", 404, "");
}

#[test]
fn all_names_of_one_file_show_its_change() {
    let tree = Tree::new();
    tree.file("a/one.txt", "first");
    tree.dir("b");
    fs::hard_link(tree.at("a/one.txt"), tree.at("b/two.txt")).expect("link");
    let outside = tree.outside("three.txt", "");
    fs::remove_file(&outside).expect("remove");
    fs::hard_link(tree.at("a/one.txt"), &outside).expect("link");
    let server = serve(&tree);
    assert_eq!(server.get("/a/one.txt").text(), "first");
    assert_eq!(server.get("/b/two.txt").text(), "first");
    tree.file("a/one.txt", "second version");
    becomes(&server, "/a/one.txt", 200, "second version");
    becomes(&server, "/b/two.txt", 200, "second version");
    // Through a name that no watch sees: only its age tells.
    fs::write(&outside, "third").expect("write");
    becomes(&server, "/a/one.txt", 200, "third");
    becomes(&server, "/b/two.txt", 200, "third");
}

#[test]
fn a_stored_coding_comes_and_goes() {
    let tree = Tree::new();
    let text = "a text of some length\n".repeat(100);
    tree.file("page.html", &text);
    let server = serve(&tree);
    let get = || server.connect().get_with("/page.html", "Accept-Encoding: gzip\r\n");
    let check = |response: &Response| {
        assert!(decode(response.field("content-encoding"), &response.body) == text.as_bytes());
    };
    check(&get());
    afpa_tests::codings::settle(&server, &["/page.html"]);
    assert_eq!(get().field("content-encoding"), Some("gzip"), "made by the server");
    for round in 0..3 {
        let mut stored = encode("gzip", text.as_bytes());
        // The time in the head of gzip tells the stored coding from one made by the server.
        stored[4] = 77 + round;
        tree.file("page.html.gz", &stored);
        eventually_within(SEEN, "the sibling is used", || {
            let response = get();
            check(&response);
            response.body == stored
        });
        tree.remove("page.html.gz");
        eventually_within(SEEN, "the sibling is forgotten", || {
            let response = get();
            check(&response);
            response.body != stored
        });
    }
}

#[test]
fn an_index_comes_and_goes() {
    let tree = Tree::new();
    tree.dir("d");
    let server = serve(&tree);
    for target in ["/", "/d/"] {
        let name = format!("{}index.html", &target[1..]);
        assert_eq!(server.get(target).status, 403);
        tree.file(&name, "index");
        becomes(&server, target, 200, "index");
        tree.replace(&name, "another index");
        becomes(&server, target, 200, "another index");
        tree.remove(&name);
        becomes(&server, target, 403, "");
    }
}

#[test]
fn a_file_and_a_folder_can_take_each_others_place() {
    let tree = Tree::new();
    tree.file("x", "a file");
    let server = serve(&tree);
    assert_eq!(server.get("/x").text(), "a file");
    tree.remove("x");
    tree.file("x/index.html", "a folder");
    becomes(&server, "/x/", 200, "a folder");
    // The cached file is dropped when its event is read, which may be later.
    eventually_within(SEEN, "/x is a folder", || server.get("/x").status == 301);
    fs::remove_dir_all(tree.at("x")).expect("remove");
    tree.file("x", "a file again");
    becomes(&server, "/x", 200, "a file again");
    becomes(&server, "/x/", 404, "");
}
