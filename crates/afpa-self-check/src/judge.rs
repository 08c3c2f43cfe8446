//! Whether a sampled answer was the server's.

use std::io;

use crate::compare::{Difference, first_difference};

/// A question to the server about one sampled answer.
pub trait Question {
    /// The answer that the server gives now.
    ///
    /// # Errors
    /// When it gives none.
    fn ask(&mut self) -> io::Result<Vec<u8>>;

    /// Whether the kernel still gives this version to such requests.
    fn is_current(&self) -> bool;

    /// Lets time go by, until a change that user mode can know of has reached the kernel.
    fn settle(&mut self);
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The server says the same.
    Same,
    /// Nothing is known: the object was replaced meanwhile, or the server gave no answer.
    Unknown,
    /// The kernel sends another answer than the server.
    Different(Difference),
}

/// Compares the kernel's answer to `request` with the server's. A difference must last: an object may have changed
/// between the two answers.
pub fn judge(request: &[u8], kernel: &[u8], question: &mut dyn Question) -> Verdict {
    let Ok(server) = question.ask() else { return Verdict::Unknown };
    if first_difference(kernel, &server).is_none() {
        return Verdict::Same;
    }
    question.settle();
    if !question.is_current() {
        return Verdict::Unknown;
    }
    let Ok(server) = question.ask() else { return Verdict::Unknown };
    let Some(at) = first_difference(kernel, &server) else { return Verdict::Same };
    if !question.is_current() {
        return Verdict::Unknown;
    }
    let (request, kernel) = (request.to_vec(), kernel.to_vec());
    Verdict::Different(Difference { request, kernel, server, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says these one after the other, and a version that is replaced after some questions.
    struct Script {
        says: Vec<Option<&'static str>>,
        current: usize,
        asked: usize,
        settled: usize,
    }

    impl Question for Script {
        fn ask(&mut self) -> io::Result<Vec<u8>> {
            self.asked += 1;
            let said = self.says[self.asked - 1];
            said.map(|text| text.as_bytes().to_vec()).ok_or(io::ErrorKind::TimedOut.into())
        }

        fn is_current(&self) -> bool {
            self.asked < self.current
        }

        fn settle(&mut self) {
            self.settled += 1;
        }
    }

    fn verdict(says: &[Option<&'static str>], current: usize) -> (Verdict, usize) {
        let mut script = Script { says: says.to_vec(), current, asked: 0, settled: 0 };
        (judge(b"GET / HTTP/1.1\r\n\r\n", b"old", &mut script), script.settled)
    }

    const ALWAYS: usize = 99;

    #[test]
    fn the_same_is_the_same_at_once() {
        assert_eq!(verdict(&[Some("old")], ALWAYS), (Verdict::Same, 0));
    }

    #[test]
    fn a_difference_that_lasts_counts() {
        let (found, settled) = verdict(&[Some("new"), Some("new")], ALWAYS);
        let Verdict::Different(difference) = found else { panic!("{found:?}") };
        assert_eq!((difference.kernel, difference.server), (b"old".to_vec(), b"new".to_vec()));
        assert_eq!((difference.at, settled), (0, 1));
    }

    #[test]
    fn an_object_that_was_replaced_says_nothing() {
        assert_eq!(verdict(&[Some("new")], 1).0, Verdict::Unknown);
        assert_eq!(verdict(&[Some("new"), Some("new")], 2).0, Verdict::Unknown);
    }

    #[test]
    fn a_server_that_comes_back_to_its_word_says_the_same() {
        assert_eq!(verdict(&[Some("503"), Some("old")], ALWAYS), (Verdict::Same, 1));
    }

    #[test]
    fn a_server_without_an_answer_says_nothing() {
        assert_eq!(verdict(&[None], ALWAYS).0, Verdict::Unknown);
        assert_eq!(verdict(&[Some("new"), None], ALWAYS).0, Verdict::Unknown);
    }
}
