//! A module whose requests say which way they take, and which notes the state functions that are called.

use std::future::{Future, ready};

use super::*;
use crate::client_stream::ClientStream;
use crate::helpers::Helpers;
use crate::module::{Protocol, Timeout};
use crate::outbox::Receipt;
use crate::peer::{Client, Peer};
use crate::state::{Context, State};
use crate::table::Diagram;

const NOW: Now = Now { steady_us: 0, unix_us: 0 };

/// A request is a line of words, of which each is an event that a state reports: `miss uncached checked hit`.
#[derive(Default)]
struct Scripted {
    called: Vec<State>,
}

type Line = Vec<String>;

impl Scripted {
    /// The event that the present state reports.
    fn report(&mut self, state: State, line: &mut Line) -> String {
        self.called.push(state);
        line.remove(0)
    }

    fn arrived(&mut self, input: &str) -> (usize, Step<Self>) {
        let mut rest = input.as_bytes();
        let step = self.on(|walk| walk.arrived(&mut rest));
        (input.len() - rest.len(), step)
    }

    fn on<R>(&mut self, go: impl FnOnce(Walk<'_, Self>) -> R) -> R {
        let mut out = Outbox::default();
        go(Walk { module: self, connection: &mut (), now: NOW, out: &mut out })
    }

    /// A request through all states, and what is to be sent.
    fn ask(&mut self, input: &str) -> Step<Self> {
        let mut step = self.arrived(input).1;
        loop {
            step = match step {
                Step::Uncached(line) => self.on(|walk| walk.loaded(line)),
                Step::Remote(line) => self.on(|walk| walk.exchanged(line)),
                step => return step,
            };
        }
    }
}

impl Protocol for Scripted {
    type Table = Diagram;
}

impl Module for Scripted {
    type Connection = ();
    type Slots<'b> = ();
    type Request<'s, 'b>
        = Line
    where
        'b: 's;
    type Routed<'m, 's, 'b>
        = (&'m mut Scripted, Line)
    where
        'b: 's,
        's: 'm;
    type Uncached = Line;
    type Loaded = Line;
    type Remote = Line;
    type Exchanged = Line;
    type Checked = Line;

    fn connected(&mut self, _: Peer, _: u32) {}

    fn derive_request(
        &mut self,
        (): &mut (),
        _: Now,
        input: &[u8],
        (): &mut (),
        _: &mut Outbox,
    ) -> Derived<Line> {
        self.called.push(State::DeriveRequest);
        let text = String::from_utf8_lossy(input);
        match text.split_once('\n') {
            None => Derived::Incomplete(Waiting::Head),
            Some(("content", _)) => Derived::Skipped(8),
            Some(("nonsense", _)) => Derived::Refused,
            Some((line, _)) => {
                Derived::Request(line.split(' ').map(str::to_owned).collect(), line.len() + 1)
            }
        }
    }

    fn derive_cached_response<'m, 's, 'b>(
        &'m mut self,
        (): &mut (),
        _: Now,
        line: &'m Line,
        _: &mut Outbox,
    ) -> Cached<(&'m mut Scripted, Line)>
    where
        'b: 's,
        's: 'm,
    {
        let mut line = line.clone();
        match self.report(State::DeriveCachedResponse, &mut line).as_str() {
            "hit" => Cached::Hit(Persistence::Keep),
            _ => Cached::Miss((self, line)),
        }
    }

    fn derive_miss_response(
        (module, mut line): (&mut Scripted, Line),
        (): &mut (),
        _: &mut Outbox,
    ) -> Miss<Line, Line> {
        match module.report(State::DeriveMissResponse, &mut line).as_str() {
            "uncached" => Miss::Uncached(line),
            "remote" => Miss::Remote(line),
            _ => Miss::Answered(Persistence::Close),
        }
    }

    fn derive_uncached_response(
        &mut self,
        _: Now,
        line: Line,
        _: &Helpers,
    ) -> impl Future<Output = Line> + 'static {
        ready(line)
    }

    fn finish_uncached(
        &mut self,
        (): &mut (),
        _: Now,
        mut line: Line,
        _: &mut Outbox,
    ) -> Then<Line, Line> {
        match self.report(State::DeriveUncachedResponse, &mut line).as_str() {
            "checked" => Then::Checked(line),
            "remote" => Then::Remote(line),
            _ => Then::Answered(Persistence::Keep),
        }
    }

    fn derive_remote_response<'c, C: ClientStream>(
        &mut self,
        line: Line,
        _: &'c mut C,
    ) -> impl Future<Output = Line> + use<'c, C> {
        ready(line)
    }

    fn finish_remote(
        &mut self,
        (): &mut (),
        _: Now,
        mut line: Line,
        _: &mut Outbox,
    ) -> Then<std::convert::Infallible, Line> {
        match self.report(State::DeriveRemoteResponse, &mut line).as_str() {
            "checked" => Then::Checked(line),
            _ => Then::Answered(Persistence::CloseAsAsked),
        }
    }

    fn derive_again(
        &mut self,
        (): &mut (),
        _: Now,
        line: &mut Line,
        (): &mut (),
        _: &mut Outbox,
    ) -> Option<Line> {
        (line.first()? != "defect").then(|| std::mem::take(line))
    }

    fn timed_out(&mut self, (): &mut (), _: Timeout, _: &[u8], _: Now, _: &mut Outbox) {}
    fn refuse_connection(&mut self, _: Client, _: Now, _: &mut Outbox) {}
    fn sent(&mut self, _: &Receipt, _: Now, _: u64) {}
    fn release_dropped(&mut self) {}
}

/// The states that a request goes through, as letters: Request, Cached, Miss, Uncached, remote (`S`erver).
fn states(input: &str) -> String {
    let mut module = Scripted::default();
    module.ask(input);
    for (at, next) in module.called.iter().enumerate().skip(1) {
        let before = module.called[at - 1];
        let is_row = |row: &&(State, E, State)| row.0 == before && row.2 == *next;
        assert!(Diagram::ROWS.iter().any(|row| is_row(&row)), "{before:?} before {next:?}");
    }
    let letter = |state: &State| match state {
        State::DeriveRequest => 'R',
        State::DeriveCachedResponse => 'C',
        State::DeriveMissResponse => 'M',
        State::DeriveUncachedResponse => 'U',
        State::DeriveRemoteResponse => 'S',
        _ => '?',
    };
    module.called.iter().map(letter).collect()
}

#[test]
fn a_request_goes_through_the_states_of_the_table() {
    for (input, expected) in [
        ("hit\n", "RC"),
        ("miss answered\n", "RCM"),
        ("miss uncached answered\n", "RCMU"),
        ("miss remote answered\n", "RCMS"),
        ("miss uncached remote answered\n", "RCMUS"),
        ("miss uncached checked hit\n", "RCMUC"),
        ("miss uncached checked miss answered\n", "RCMUCM"),
        ("miss remote checked miss remote answered\n", "RCMSCMS"),
        ("miss remote checked defect\n", "RCMS"),
        ("nonsense\n", "R"),
    ] {
        assert_eq!(states(input), expected, "{input:?}");
    }
}

#[test]
fn the_engine_learns_what_to_do_next() {
    let ask = |input: &str| Scripted::default().ask(input);
    assert!(matches!(ask("hit"), Step::Receive(Waiting::Head)));
    assert!(matches!(ask("nonsense\n"), Step::Refuse));
    assert!(matches!(ask("hit\n"), Step::Send(Persistence::Keep)));
    assert!(matches!(ask("miss answered\n"), Step::Send(Persistence::Close)));
    assert!(matches!(ask("miss uncached answered\n"), Step::Send(Persistence::Keep)));
    assert!(matches!(ask("miss remote answered\n"), Step::SendRest(Persistence::CloseAsAsked)));
    // Nothing of that exchange was sent: the answer is a whole one.
    assert!(matches!(ask("miss remote checked hit\n"), Step::Send(Persistence::Keep)));
    assert!(matches!(ask("miss remote checked defect\n"), Step::Refuse));
}

#[test]
fn the_engine_learns_which_bytes_are_done_with() {
    let mut module = Scripted::default();
    assert!(matches!(module.arrived("content\nhit\n"), (8, Step::Skip)));
    assert!(matches!(module.arrived("hit\nhit\n"), (4, Step::Send(_))));
    assert!(matches!(module.arrived("miss uncached answered\nhit\n"), (23, Step::Uncached(_))));
    assert!(matches!(module.arrived("miss remote answered\n"), (21, Step::Remote(_))));
    assert!(matches!(module.arrived("hi"), (0, Step::Receive(_))));
}

#[test]
fn a_response_that_is_not_the_last_one_leads_to_the_next_request() {
    assert_eq!(after::<Diagram>(Persistence::Keep), State::DeriveRequest);
    assert_eq!(after::<Diagram>(Persistence::Close), State::Closed);
    assert_eq!(after::<Diagram>(Persistence::CloseAsAsked), State::Closed);
}

#[test]
fn the_states_that_wait_are_those_of_a_thread_context() {
    let waits = [State::DeriveUncachedResponse, State::DeriveRemoteResponse];
    for state in State::ALL {
        let is_thread = state.context::<Diagram>() == Context::Thread;
        assert_eq!(is_thread, waits.contains(&state), "{state:?}");
    }
}

/// In a walk this is found by the compiler.
#[test]
#[should_panic(expected = "no row")]
fn a_table_without_a_row_is_refused() {
    struct Short;
    impl Table for Short {
        const ROWS: &'static [(State, E, State)] = &[];
        const IN_THREAD: &'static [State] = &[];
    }
    successor::<Short>(State::DeriveRequest, E::Request);
}

#[test]
#[should_panic(expected = "brings no input")]
fn a_table_that_leads_to_a_state_without_input_is_refused() {
    struct Hasty;
    impl Table for Hasty {
        const ROWS: &'static [(State, E, State)] =
            &[(State::DeriveRequest, E::Request, State::SendResponse)];
        const IN_THREAD: &'static [State] = &[];
    }
    successor::<Hasty>(State::DeriveRequest, E::Request);
}
