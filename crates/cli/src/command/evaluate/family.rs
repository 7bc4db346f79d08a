//! Options of `evaluate rollouts` that games or robots alone have.

use anyhow::{Result, bail};
use overtone_train::Agent;

use crate::keys;

/// Options of games. (`protocol` is not among them: a robot is played by `matched` too.)
const GAMES: [&str; 2] = ["temperature", "released_target"];

/// Options of robots.
const ROBOTS: [&str; 2] = ["actions", "revision"];

/// Whether `words` (each `key=value`) set anything that playing `agent` would not heed.
///
/// # Errors
/// When one does.
pub fn check(words: &[String], agent: &Agent) -> Result<()> {
    let (others, of, task) = match agent {
        Agent::Atari(agent) => (ROBOTS, "robots", &agent.game),
        Agent::Continuous(agent) => (GAMES, "games", &agent.env),
    };
    for word in words {
        let (key, text) = keys::split(word)?;
        if others.contains(&key.as_str()) {
            bail!("{key}={text} is for {of} alone, and this agent plays {task}");
        }
    }
    Ok(())
}
