//! Processes as threads of one program, connected by channels.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use overtone_train::{LostProcess, Processes};

/// One process. When it is dropped, the others get an error.
pub struct Member {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Member {
    fn exchange(&self, bytes_for: impl Fn(usize) -> Vec<u8>) -> Result<Vec<u8>, LostProcess> {
        let lost = |rank: usize| LostProcess(format!("process {rank} has ended"));
        for (rank, to) in self.to.iter().enumerate() {
            to.send(bytes_for(rank)).map_err(|_| lost(rank))?;
        }
        let received = self.from.iter().enumerate();
        let received = received.map(|(rank, from)| from.recv().map_err(|_| lost(rank)));
        let received = received.collect::<Result<Vec<_>, LostProcess>>()?;
        assert!(received.iter().all(|bytes| bytes.len() == received[0].len()), "equally many");
        Ok(received.concat())
    }
}

impl Processes for Member {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<u8>, LostProcess> {
        self.exchange(|_| bytes.to_vec())
    }

    fn all_to_all(&self, parts: &[u8]) -> Result<Vec<u8>, LostProcess> {
        let n = parts.len() / self.count();
        self.exchange(|rank| parts[rank * n..(rank + 1) * n].to_vec())
    }
}

/// Results of `n` processes, by rank.
pub fn on_each<T: Send>(n: usize, work: impl Fn(Member) -> T + Sync) -> Vec<T> {
    let (mut to, mut from): (Vec<Vec<_>>, Vec<Vec<_>>) =
        ((0..n).map(|_| Vec::new()).collect(), (0..n).map(|_| Vec::new()).collect());
    for sender in &mut to {
        for receivers in &mut from {
            let (send, receive) = channel();
            sender.push(send);
            receivers.push(receive);
        }
    }
    let members: Vec<Member> = (to.into_iter().zip(from).enumerate())
        .map(|(rank, (to, from))| Member { rank, to, from })
        .collect();
    thread::scope(|scope| {
        let threads: Vec<_> =
            members.into_iter().map(|member| scope.spawn(|| work(member))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
