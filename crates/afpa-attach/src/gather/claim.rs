//! Claims of pinned objects: answers that the server must go on to give. It is asked again and again, with few
//! requests, so that new rules of the server count soon.

use afpa_http::request::FieldClasses;

use super::answers::AnswerClass;
use super::ask::{Ask, AskError, Moving, Wanted};
use super::fields::members;
use super::talk::request;
use crate::answer::{Answer, Asked};
use crate::decoys::together;

/// The server's answers for a target, as digests.
#[derive(Clone, Debug)]
pub struct Claim {
    hosts: Vec<String>,
    target: String,
    /// The Accept-Encoding of each stored answer, and the answer's digest.
    answers: Vec<(Option<String>, u64)>,
    fields: FieldClasses,
    /// How often it was confirmed: names, addresses and decoys take turns.
    turn: usize,
    /// As in [`Wanted`].
    kept: bool,
    /// For a kept answer: the first answer at the last confirmation.
    heard: Option<Answer>,
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
            kept: wanted.kept,
            heard: None,
        }
    }

    /// Whether the server still says so: from every viewpoint and by every name, though not by every name from
    /// every viewpoint each time; in every coding; and with decoys of all fields that did not matter, another
    /// set each time.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn confirm(&mut self, server: &mut dyn Ask) -> Result<bool, AskError> {
        let mut server = Moving { server, moves: self.kept };
        let server: &mut dyn Ask = &mut server;
        let viewpoints = server.viewpoints().max(1);
        self.heard = None;
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

    /// For a kept answer: the first answer at the last confirmation.
    pub fn heard(&self) -> Option<&Answer> {
        self.heard.as_ref()
    }

    fn still(
        &mut self,
        server: &mut dyn Ask,
        viewpoint: usize,
        host: usize,
        answer: usize,
        fields: &[(&str, &str)],
    ) -> Result<bool, AskError> {
        let Some((text, digest)) = self.answers.get(answer) else { return Ok(true) };
        let host = self.hosts.get(host).map(String::as_str).unwrap_or_default();
        let (hosts, target, kept) = (&self.hosts, &self.target, self.kept);
        let wanted = Wanted { hosts, target, longest: 0, closes: false, kept };
        let coding = text.iter().map(|text| ("Accept-Encoding", text.as_str()));
        let fields: Vec<_> = coding.chain(fields.iter().copied()).collect();
        let request = request(&wanted, Asked::Get, host, &fields, false);
        match server.ask_at(viewpoint, Asked::Get, &request) {
            Ok(said) => {
                let same = Answer::digest(&said) == *digest;
                if kept {
                    self.heard.get_or_insert(said);
                }
                Ok(same)
            }
            Err(AskError::Malformed(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
