//! Search of the interleavings of a worker that takes a value, and a caller that takes it back.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::mpsc::{TryRecvError, channel};

use super::*;

/// Locks of the model checker.
struct ModelLocks;

impl Locks for ModelLocks {
    type Lock<T: Send> = Mutex<T>;
}

impl<T> TryLock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_lock().ok().map(|mut value| f(&mut value))
    }
}

/// Value that must be dropped exactly once.
struct Disk(Arc<AtomicUsize>);

impl Drop for Disk {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs a worker that takes the value, or with `ends` ends with the command in its mailbox. The
/// caller takes the value back without waiting, as after its time limit.
fn withdraw(ends: bool) {
    let drops = Arc::new(AtomicUsize::new(0));
    let offer = RevocableValue::<Disk, ModelLocks>::new(Disk(Arc::clone(&drops)));
    let (reply, answer) = channel();
    let (commands, mailbox) = channel();
    commands.send((offer.clone(), reply)).unwrap();
    drop(commands);
    let worker = shuttle::thread::spawn(move || {
        if ends {
            return None;
        }
        let (offer, reply): (RevocableValue<Disk, ModelLocks>, shuttle::sync::mpsc::Sender<()>) =
            mailbox.recv().unwrap();
        let taken = offer.take()?;
        let _ = reply.send(());
        Some(taken)
    });
    let returned = offer.take();
    let answered = match (&returned, answer.recv()) {
        (Some(_), Err(_)) => false,
        (None, Ok(())) => true,
        (Some(_), Ok(())) => panic!("both sides have the value"),
        (None, Err(_)) => panic!("no side has the value"),
    };
    assert!(matches!(answer.try_recv(), Err(TryRecvError::Disconnected | TryRecvError::Empty)));
    let taken = worker.join().unwrap();
    assert_eq!(taken.is_some(), answered);
    assert!(offer.take().is_none());
    assert_eq!(drops.load(Ordering::SeqCst), 0, "the value was dropped");
    drop((taken, returned));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn exactly_one_side_takes_an_offered_value() {
    for ends in [false, true] {
        shuttle::check_dfs(move || withdraw(ends), None);
    }
}
