//! The kernel's programs, which are C, have the order of [`Softirq`]: a change of the table fails here until they follow.
//!
//! The functions are read in the order of their calls, from `ingress` down. A state function of C has the name that
//! [`function_of`] says.

use std::collections::HashMap;
use std::path::Path;

use afpa_framework::{Event, Softirq, State, Table};

/// The function of `bpf/` that is a state.
fn function_of(state: State) -> Option<&'static str> {
    match state {
        State::DeriveRequest => Some("derive_request"),
        State::DeriveCachedResponse => Some("derive_cached_response"),
        State::SendResponse => Some("send"),
        State::DeriveDeferredResponse => Some("pass_up"),
        // The kernel's programs load nothing, and ask no server.
        State::DeriveMissResponse | State::DeriveUncachedResponse | State::DeriveRemoteResponse => {
            None
        }
        // The end of a connection is the kernel's own, or that of `socketless.bpf.c`.
        State::Closed => None,
    }
}

/// The bodies of the functions of a C file by their names, without comments.
fn functions(text: &str, bodies: &mut HashMap<String, String>) {
    let mut head = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "{" {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            if let Some((before, _)) = head.split_once('(')
                && let Some(name) = before.split(|c: char| !is_name(c)).next_back()
            {
                bodies.insert(name.to_owned(), without_comments(&body.join("\n")));
            }
            head.clear();
        } else if line.starts_with(char::is_alphabetic) {
            line.clone_into(&mut head);
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn without_comments(text: &str) -> String {
    let mut pieces = text.split("/*");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |code, piece| code + piece.split_once("*/").map_or("", |(_, rest)| rest))
}

/// The names of functions that `body` calls, in the order of the text.
fn calls(body: &str) -> impl Iterator<Item = &str> {
    let ends = body.match_indices('(').map(|(at, _)| &body[..at]);
    ends.filter_map(|before| before.split(|c: char| !is_name(c)).next_back())
}

/// The bodies of all functions of the programs that answer.
fn programs() -> HashMap<String, String> {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    let mut bodies = HashMap::new();
    let mut folders = vec![bpf.join("include/afpa")];
    let mut files = vec![bpf.join("programs/ingress.bpf.c")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the headers") {
            let path = entry.expect("a name").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    for file in files {
        functions(&std::fs::read_to_string(file).expect("text"), &mut bodies);
    }
    bodies
}

/// The states whose functions are called, each where it is called first.
fn states_of(name: &str, bodies: &HashMap<String, String>) -> Vec<State> {
    fn visit<'a>(
        name: &'a str,
        bodies: &'a HashMap<String, String>,
        seen: &mut Vec<&'a str>,
        states: &mut Vec<State>,
    ) {
        if seen.contains(&name) {
            return;
        }
        seen.push(name);
        states.extend(State::ALL.into_iter().filter(|state| function_of(*state) == Some(name)));
        for called in bodies.get(name).map(|body| calls(body)).into_iter().flatten() {
            visit(called, bodies, seen, states);
        }
    }
    let mut states = Vec::new();
    visit(name, bodies, &mut Vec::new(), &mut states);
    states
}

/// The states of a hit, in the order of the table.
fn hit() -> Vec<State> {
    let mut states = vec![State::DeriveRequest];
    for event in [Event::Request, Event::Hit] {
        let last = states[states.len() - 1];
        states.push(last.next::<Softirq>(event).expect("a hit is in the table"));
    }
    states
}

#[test]
fn the_programs_call_the_states_of_a_hit_in_the_order_of_the_table_and_defer_behind_them() {
    let bodies = programs();
    let called = states_of("ingress", &bodies);
    let expected = [hit(), vec![State::DeriveDeferredResponse]].concat();
    assert_eq!(called, expected, "the first call of each state, from `ingress` down");
    // Within them, too: no state function calls the next one.
    for state in hit() {
        let name = function_of(state).expect("a function");
        assert_eq!(states_of(name, &bodies), [state], "{name}");
    }
}

#[test]
fn each_state_of_the_table_has_a_function_and_each_function_is_a_state_of_the_table() {
    for state in State::ALL.into_iter().filter(|state| *state != State::Closed) {
        let is_in_table = Softirq::ROWS.iter().any(|(from, _, _)| *from == state);
        assert_eq!(function_of(state).is_some(), is_in_table, "{state:?}");
    }
}

#[test]
fn each_event_but_those_of_a_hit_leaves_the_request_to_user_mode() {
    for (state, event, next) in Softirq::ROWS {
        let goes_on = hit().contains(next) || *next == State::Closed;
        assert_eq!(
            goes_on,
            matches!(event, Event::Request | Event::Hit | Event::Sent | Event::SentLast),
            "{event:?} in {state:?}"
        );
    }
}

#[test]
fn calls_are_read_without_comments_and_declarations() {
    let mut bodies = HashMap::new();
    let text = "static int f(int a);\n/* g() */\nstatic __always_inline int h(struct x *a,\n\t\t\tint b)\n\
                {\n\treturn send(a /* not g() */, b) + (b);\n}\n";
    functions(text, &mut bodies);
    assert_eq!(bodies.keys().collect::<Vec<_>>(), ["h"]);
    assert_eq!(calls(&bodies["h"]).collect::<Vec<_>>(), ["send", ""]);
}
