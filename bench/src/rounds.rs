//! Alternating rounds: a temporary slowdown of the machine affects all contenders equally.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::progress::report;

/// One of several implementations of the same work.
pub struct Contender<'a> {
    /// Name in the table.
    pub name: String,
    round: Box<dyn FnMut() -> Result<f64> + 'a>,
}

/// The results of one contender.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// Name in the table.
    pub name: String,
    /// One value per round, in the order of the rounds.
    pub rounds: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `round` does the work once and returns its cost.
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

/// Runs every contender once to warm up, then `rounds` times. Each round starts with a different contender.
pub fn run_rounds(mut contenders: Vec<Contender<'_>>, rounds: u32) -> Result<Vec<Measurement>> {
    let mut measured: Vec<Measurement> = contenders
        .iter()
        .map(|contender| Measurement {
            name: contender.name.clone(),
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..=rounds {
        let first = round as usize % contenders.len().max(1);
        for offset in 0..contenders.len() {
            let index = (first + offset) % contenders.len();
            let contender = &mut contenders[index];
            let value =
                (contender.round)().with_context(|| format!("`{}`, round {round}", contender.name))?;
            if round > 0 {
                measured[index].rounds.push(value);
            }
        }
        report(&format!("  round {round} of {rounds}"));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_contender_runs_in_every_round_and_the_first_round_is_discarded() {
        let log = RefCell::new(Vec::new());
        let contender = |name: &'static str, value: f64| {
            let log = &log;
            Contender::new(name, move || {
                log.borrow_mut().push(name);
                Ok(value)
            })
        };
        let measured = run_rounds(vec![contender("a", 1.0), contender("b", 2.0)], 2).unwrap();
        assert_eq!(*log.borrow(), ["a", "b", "b", "a", "a", "b"]);
        assert_eq!(measured[1].rounds, [2.0, 2.0]);
    }
}
