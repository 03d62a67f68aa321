//! Rounds that take turns: what slows the machine down for a while slows every contender down alike.

use anyhow::{Context, Result};

use crate::progress::say;

/// One of several ways to do the same work.
pub struct Contender<'a> {
    /// What the table calls it.
    pub name: String,
    round: Box<dyn FnMut() -> Result<f64> + 'a>,
}

/// What the rounds of one contender gave.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What the table calls it.
    pub name: String,
    /// One value per round, in the order of the rounds.
    pub rounds: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `round` does the work once and says what it cost.
    pub fn new(name: impl Into<String>, round: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self {
            name: name.into(),
            round: Box::new(round),
        }
    }
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Runs every contender once to warm up, then `rounds` times, a different one first in each round.
pub fn take_turns(mut contenders: Vec<Contender<'_>>, rounds: u32) -> Result<Vec<Measured>> {
    let mut measured: Vec<Measured> = contenders
        .iter()
        .map(|contender| Measured {
            name: contender.name.clone(),
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..=rounds {
        let first = round as usize % contenders.len().max(1);
        for turn in 0..contenders.len() {
            let index = (first + turn) % contenders.len();
            let contender = &mut contenders[index];
            let value =
                (contender.round)().with_context(|| format!("`{}`, round {round}", contender.name))?;
            if round > 0 {
                measured[index].rounds.push(value);
            }
        }
        say(&format!("  round {round} of {rounds}"));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn everyone_has_a_turn_in_every_round_and_the_first_round_does_not_count() {
        let log = RefCell::new(Vec::new());
        let contender = |name: &'static str, value: f64| {
            let log = &log;
            Contender::new(name, move || {
                log.borrow_mut().push(name);
                Ok(value)
            })
        };
        let measured = take_turns(vec![contender("a", 1.0), contender("b", 2.0)], 2).unwrap();
        assert_eq!(*log.borrow(), ["a", "b", "b", "a", "a", "b"]);
        assert_eq!(measured[1].rounds, [2.0, 2.0]);
    }
}
