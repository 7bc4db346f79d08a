//! [`FrameMemory`]: a policy's cache of embedded frames.

use std::collections::VecDeque;

use burn::tensor::{Int, Tensor};
use overtone_core::{Turn, Window};

/// Embedded observations of all agents' contexts. Each is embedded once; they stay on the device,
/// and contexts are made by selecting rows. A copy shares them.
#[derive(Clone)]
pub(crate) struct FrameMemory {
    context_length: usize,
    /// `[rows, d_model]`; `None` before the first observation.
    table: Option<Tensor<2>>,
    /// For each agent, the rows of its last `context_length` observations.
    rows: Vec<VecDeque<i32>>,
}

impl FrameMemory {
    pub fn new(context_length: usize) -> Self {
        Self { context_length, table: None, rows: Vec::new() }
    }

    /// Stores the new observation of each agent in `turns`, `[turns, d_model]`, and returns their
    /// contexts, as long as the longest and padded with zeros in front: `[turns, time, d_model]`.
    /// Afterwards the memory holds only the rows that contexts need.
    pub fn contexts(&mut self, turns: &[Turn], new: Tensor<2>) -> Tensor<3> {
        let [batch, d_model] = new.dims();
        let held = self.table.take();
        let first_row = held.as_ref().map_or(0, |held| held.dims()[0]);
        let mut longest = 1;
        for (turn, row) in turns.iter().zip(first_row..) {
            if self.rows.len() <= turn.agent {
                self.rows.resize_with(turn.agent + 1, VecDeque::new);
            }
            let rows = &mut self.rows[turn.agent];
            if turn.start.is_some() {
                rows.clear();
            }
            rows.push_back(row as i32);
            if rows.len() > self.context_length {
                rows.pop_front();
            }
            longest = longest.max(rows.len());
        }
        let padding = new.clone().narrow(0, 0, 1).zeros_like();
        let table = Tensor::cat(held.into_iter().chain([new, padding]).collect(), 0);
        let padding = table.dims()[0] as i32 - 1;

        let mut picked = vec![padding; batch * longest];
        for (turn, places) in turns.iter().zip((0..batch).map(|row| row * longest..)) {
            let rows = &mut self.rows[turn.agent];
            let window = Window::ending_at(0, rows.len() - 1, longest);
            let places = places.start..places.start + longest;
            window.lay(rows.make_contiguous(), 1, padding, &mut picked[places.clone()]);
            *rows = (places.end - rows.len()..places.end).map(|row| row as i32).collect();
        }
        // Agents without a turn keep their rows.
        let mut waiting = vec![true; self.rows.len()];
        turns.iter().for_each(|turn| waiting[turn.agent] = false);
        for (rows, _) in self.rows.iter_mut().zip(waiting).filter(|(_, waits)| *waits) {
            for row in rows {
                let moved = picked.len() as i32;
                picked.push(std::mem::replace(row, moved));
            }
        }
        let picked = Tensor::<1, Int>::from_data(&picked[..], &table.device());
        let table = table.select(0, picked);
        let contexts = table.clone().narrow(0, 0, batch * longest);
        self.table = Some(table);
        contexts.reshape([batch, longest, d_model])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_core::policy::EpisodeStart;

    #[test]
    fn each_agent_s_last_observations_are_on_the_right() {
        let start = EpisodeStart { seed: 0, target_return: 0.0 };
        let turn = |agent: usize, begins: bool| Turn {
            agent,
            reward: 0.0,
            start: begins.then_some(start),
        };
        let mut memory = FrameMemory::new(2);
        let mut see = |turns: &[Turn], new: &[f32]| -> (Vec<f32>, Vec<usize>) {
            let new = Tensor::<1>::from_data(new, &Device::flex()).reshape([turns.len(), 1]);
            let contexts = memory.contexts(turns, new);
            let shape = contexts.dims().to_vec();
            (contexts.into_data().iter().collect(), shape)
        };
        assert_eq!(see(&[turn(1, true)], &[10.0]), (vec![10.0], vec![1, 1, 1]));
        let two = see(&[turn(0, true), turn(1, false)], &[1.0, 11.0]);
        assert_eq!(two, (vec![0.0, 1.0, 10.0, 11.0], vec![2, 2, 1]));
        // Agent 0 waits, and keeps its memory.
        assert_eq!(see(&[turn(1, false)], &[12.0]), (vec![11.0, 12.0], vec![1, 2, 1]));
        let two = see(&[turn(1, true), turn(0, false)], &[20.0, 2.0]);
        assert_eq!(two, (vec![0.0, 20.0, 1.0, 2.0], vec![2, 2, 1]));
    }
}
