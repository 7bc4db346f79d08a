//! Descriptions of recordings: what they hold, what is wrong with them, and where they are.

pub mod card;
pub mod check;
pub mod expected;
pub mod findings;
pub(crate) mod fits;
pub mod locate;
pub mod minari_id;
pub mod origin;
pub(crate) mod recorded_spaces;
pub(crate) mod recorded_task;
