//! What must stay true of a pinned object. The server is asked about it again and again, with few requests,
//! so that new rules of the server count soon.

use afpa_http::request::FieldClasses;

use super::ask::{Ask, AskError, Wanted};
use super::fields::members;
use super::stored::AnswerClass;
use super::talk::request;
use crate::answer::{Answer, Asked};
use crate::decoys::together;

/// What the server said of a target, in short.
#[derive(Clone, Debug)]
pub struct Claim {
    hosts: Vec<String>,
    target: String,
    /// The Accept-Encoding of each stored answer, and the answer's digest.
    answers: Vec<(Option<String>, u64)>,
    fields: FieldClasses,
    /// How often it was confirmed: names, addresses and decoys take turns.
    turn: usize,
}

impl Claim {
    pub(super) fn new<'c>(
        wanted: &Wanted<'_>,
        classes: impl Iterator<Item = &'c AnswerClass>,
        fields: FieldClasses,
    ) -> Self {
        let answers =
            classes.map(|class| (class.text.clone(), class.answers.whole.digest())).collect();
        Self {
            hosts: wanted.hosts.to_vec(),
            target: wanted.target.into(),
            answers,
            fields,
            turn: 0,
        }
    }

    /// Whether the server still says so: from every viewpoint and by every name, though not by every name from
    /// every viewpoint each time; in every coding; and with decoys of all fields that did not matter, another
    /// set each time.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn confirm(&mut self, server: &mut dyn Ask) -> Result<bool, AskError> {
        let viewpoints = server.viewpoints().max(1);
        let turn = self.turn;
        self.turn += 1;
        let hosts = self.hosts.len().max(1);
        for at in 0..viewpoints.max(hosts) {
            if !self.still(server, at % viewpoints, (at + turn) % hosts, 0, &[])? {
                return Ok(false);
            }
        }
        for answer in 1..self.answers.len() {
            if !self.still(server, (answer + turn) % viewpoints, 0, answer, &[])? {
                return Ok(false);
            }
        }
        let host = self.hosts.first().map(String::as_str).unwrap_or_default();
        let sets = together(members(self.fields), host);
        let Some(decoy) = sets.get(turn % sets.len().max(1)) else { return Ok(true) };
        let decoy: Vec<_> = decoy.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.still(server, 0, 0, turn % self.answers.len().max(1), &decoy)
    }

    fn still(
        &self,
        server: &mut dyn Ask,
        viewpoint: usize,
        host: usize,
        answer: usize,
        fields: &[(&str, &str)],
    ) -> Result<bool, AskError> {
        let Some((text, digest)) = self.answers.get(answer) else { return Ok(true) };
        let host = self.hosts.get(host).map(String::as_str).unwrap_or_default();
        let wanted = Wanted { hosts: &self.hosts, target: &self.target, longest: 0, closes: false };
        let coding = text.iter().map(|text| ("Accept-Encoding", text.as_str()));
        let fields: Vec<_> = coding.chain(fields.iter().copied()).collect();
        let request = request(&wanted, Asked::Get, host, &fields, false);
        match server.ask_at(viewpoint, Asked::Get, &request) {
            Ok(said) => Ok(Answer::digest(&said) == *digest),
            Err(AskError::Malformed(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
