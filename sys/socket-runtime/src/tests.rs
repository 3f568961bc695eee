use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::*;

/// Time limit for conditions that a test waits for; generous, because the machine may be loaded.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the number of threads of this process with this name.
fn threads(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|comm| comm.trim() == name).count()
}

fn wait_for(subject: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "timeout while waiting for: {subject}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_number_of_threads_does_not_depend_on_the_number_of_tasks() {
    let runtime = SocketRuntime::new("many-tasks", 2, ThreadHooks::default()).unwrap();
    let mut echoes: Vec<_> = (0..300)
        .map(|_| {
            let (local, peer) = UnixStream::pair().unwrap();
            peer.set_nonblocking(true).unwrap();
            let watched = {
                let _guard = runtime.enter();
                WatchedFd::new(peer.into()).unwrap()
            };
            let (received, receives) = channel();
            let task = runtime.spawn(|mut stop| async move {
                let read = watched.read(|fd| {
                    let mut stream = UnixStream::from(fd.try_clone_to_owned()?);
                    stream.read(&mut [0])
                });
                tokio::select! {
                    () = stop.wait() => {}
                    read = read => received.send(read.unwrap()).unwrap(),
                }
            });
            (task, local, receives)
        })
        .collect();
    assert_eq!(threads("many-tasks"), 2);
    for (_, socket, receives) in &mut echoes {
        socket.write_all(b"x").unwrap();
        assert_eq!(receives.recv_timeout(LIMIT), Ok(1));
    }
    assert_eq!(threads("many-tasks"), 2);
    drop((echoes, runtime));
    wait_for("the end of the threads", || threads("many-tasks") == 0);
}

#[test]
fn a_task_is_stopped_and_joined_when_it_is_dropped() {
    let runtime = SocketRuntime::new("joined", 1, ThreadHooks::default()).unwrap();
    let (start_sender, begins) = channel();
    let (end_sender, ends) = channel();
    let task = runtime.spawn(|mut stop| async move {
        start_sender.send(()).unwrap();
        stop.wait().await;
        assert!(stop.is_set());
        // A call that has started is completed.
        run_blocking(|| std::thread::sleep(Duration::from_millis(20))).await.unwrap();
        end_sender.send(()).unwrap();
    });
    // The task keeps the threads of its runtime alive.
    drop(runtime);
    begins.recv_timeout(LIMIT).unwrap();
    assert!(ends.try_recv().is_err());
    drop(task);
    assert_eq!(ends.try_recv(), Ok(()));
}

#[test]
fn calls_that_block_keep_no_other_task_from_running() {
    let runtime = SocketRuntime::new("blocked", 1, ThreadHooks::default()).unwrap();
    let barrier = Arc::new(Barrier::new(33));
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            runtime.spawn(|_| async move {
                // This returns only if all 33 calls run concurrently.
                run_blocking(move || barrier.wait()).await.unwrap();
            })
        })
        .collect();
    barrier.wait();
    drop(tasks);
}

#[test]
fn a_call_that_panics_ends_nothing_but_itself() {
    let runtime = SocketRuntime::new("panics", 1, ThreadHooks::default()).unwrap();
    let (report_sender, reports) = channel();
    let _task = runtime.spawn(|_| async move {
        let dropped = Dropped(report_sender.clone());
        let result: Result<(), BlockingCallFailed> = run_blocking(move || {
            let _owned = dropped;
            panic!("a defect");
        })
        .await;
        report_sender.send(format!("{result:?}")).unwrap();
    });
    assert_eq!(reports.recv_timeout(LIMIT).unwrap(), "dropped");
    assert_eq!(reports.recv_timeout(LIMIT).unwrap(), "Err(BlockingCallFailed)");
}

struct Dropped(std::sync::mpsc::Sender<String>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped".to_owned());
    }
}

#[test]
fn worker_threads_are_confined_before_tasks_run_and_others_are_their_children() {
    let (workers, children) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_worker, of_child) = (Arc::clone(&workers), Arc::clone(&children));
    let hooks = ThreadHooks {
        on_worker_start: Arc::new(move || {
            of_worker.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }),
        on_blocking_start: Arc::new(move || {
            of_child.fetch_add(1, Ordering::Relaxed);
        }),
    };
    let runtime = SocketRuntime::new("hooks", 3, hooks).unwrap();
    assert_eq!((workers.load(Ordering::Relaxed), children.load(Ordering::Relaxed)), (3, 0));
    let (done, is_done) = sync_channel(1);
    let _task = runtime.spawn(|_| async move {
        run_blocking(|| ()).await.unwrap();
        done.send(()).unwrap();
    });
    is_done.recv_timeout(LIMIT).unwrap();
    assert_eq!((workers.load(Ordering::Relaxed), children.load(Ordering::Relaxed)), (3, 1));
}

#[test]
fn a_worker_thread_that_cannot_be_confined_ends_the_start() {
    let hooks = ThreadHooks {
        on_worker_start: Arc::new(|| Err(io::Error::other("no filter"))),
        ..ThreadHooks::default()
    };
    let error = SocketRuntime::new("refused", 1, hooks).err().unwrap();
    assert_eq!(error.to_string(), "no filter");
    wait_for("the end of the thread", || threads("refused") == 0);
}

/// A descriptor that is reported as ready without data is not polled in a loop.
#[test]
fn a_spurious_readiness_is_waited_out() {
    let runtime = SocketRuntime::new("spurious", 1, ThreadHooks::default()).unwrap();
    let (mut local, peer) = UnixStream::pair().unwrap();
    peer.set_nonblocking(true).unwrap();
    let watched = {
        let _guard = runtime.enter();
        WatchedFd::readable(std::os::fd::OwnedFd::from(peer)).unwrap()
    };
    let (report_sender, reports) = channel();
    let _task = runtime.spawn(|_| async move {
        let mut calls = 0;
        let read = watched.read(|_| {
            calls += 1;
            match calls {
                1 => Err(io::ErrorKind::Interrupted.into()),
                2 | 3 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        read.await.unwrap();
        report_sender.send(calls).unwrap();
    });
    local.write_all(b"x").unwrap();
    wait_for("the second byte to be noticed", || {
        // This fails after the task has ended and closed its side.
        let _ = local.write_all(b"x");
        matches!(reports.try_recv(), Ok(4))
    });
}

/// A task whose descriptor is always ready does not prevent others from running.
#[test]
fn a_peer_that_never_stops_sending_does_not_hold_up_others() {
    let runtime = SocketRuntime::new("flood", 1, ThreadHooks::default()).unwrap();
    let (_ours, peer) = UnixStream::pair().unwrap();
    peer.set_nonblocking(true).unwrap();
    let watched = {
        let _guard = runtime.enter();
        WatchedFd::new(peer.into()).unwrap()
    };
    let _flooded = runtime.spawn(|stop| async move {
        while !stop.is_set() {
            watched.read(|_| Ok(())).await.unwrap();
        }
    });
    let (done, is_done) = channel();
    let _other = runtime.spawn(|_| async move { done.send(()).unwrap() });
    is_done.recv_timeout(LIMIT).unwrap();
}

/// Makes clone(2) fail with the error number `errno` in the calling thread and the threads that it
/// starts.
fn forbid_threads(errno: i32) {
    let calls = [libc::SYS_clone, libc::SYS_clone3].map(|call| (call, Vec::new()));
    let filter = SeccompFilter::new(
        calls.into(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

#[test]
fn a_call_for_which_there_is_no_thread_is_dropped_and_not_executed_later() {
    let hooks = ThreadHooks {
        on_worker_start: Arc::new(|| {
            forbid_threads(libc::EAGAIN);
            Ok(())
        }),
        ..ThreadHooks::default()
    };
    let runtime = SocketRuntime::new("no-threads", 1, hooks).unwrap();
    let (report_sender, reports) = channel();
    let _task = runtime.spawn(|_| async move {
        let (dropped, executed) = (Dropped(report_sender.clone()), report_sender.clone());
        let result = run_blocking(move || {
            let _owned = dropped;
            executed.send("executed".to_owned()).unwrap();
        })
        .await;
        report_sender.send(format!("{result:?}")).unwrap();
        let mut value = Some(7);
        let result = run_blocking_on(&mut value, |value| *value += 1).await;
        report_sender.send(format!("{result:?} {value:?}")).unwrap();
    });
    let next = || reports.recv_timeout(LIMIT).unwrap();
    assert_eq!([next(), next()], ["dropped", "Err(BlockingCallFailed)"]);
    assert_eq!(next(), "Err(BlockingCallFailed) Some(7)");
    // This thread can start one, and that thread executes all queued calls first.
    let (done, is_done) = channel();
    let _guard = runtime.enter();
    tokio::task::spawn_blocking(move || done.send(()).unwrap());
    is_done.recv_timeout(LIMIT).unwrap();
    assert!(reports.try_recv().is_err(), "the call was executed after it was dropped");
}

#[test]
fn a_value_stays_with_its_task_unless_the_call_panics() {
    let runtime = SocketRuntime::new("lent", 1, ThreadHooks::default()).unwrap();
    let (report_sender, reports) = channel();
    let _task = runtime.spawn(|_| async move {
        let mut value = Some(Dropped(report_sender.clone()));
        assert_eq!(run_blocking_on(&mut value, |_| 3).await, Ok(3));
        assert!(value.is_some());
        let panicked: Result<(), _> = run_blocking_on(&mut value, |_| panic!("a defect")).await;
        report_sender.send(format!("{panicked:?} {}", value.is_none())).unwrap();
    });
    assert_eq!(reports.recv_timeout(LIMIT).unwrap(), "dropped");
    assert_eq!(reports.recv_timeout(LIMIT).unwrap(), "Err(BlockingCallFailed) true");
}

#[test]
fn a_runtime_whose_threads_cannot_be_started_is_refused() {
    for workers in [1, 3] {
        let starting = std::thread::spawn(move || {
            forbid_threads(libc::EAGAIN);
            SocketRuntime::new("refused", workers, ThreadHooks::default()).err()
        });
        let error = starting.join().expect("no panic").expect("no thread was started");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
    }
}

#[test]
fn at_most_so_many_blocking_calls_are_executed_at_once() {
    let hooks = ThreadHooks::default();
    let runtime = SocketRuntime::with_blocking_max("limited", 1, 2, hooks).unwrap();
    let (running, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (running, max) = (Arc::clone(&running), Arc::clone(&max));
            runtime.spawn(|_| async move {
                let call = move || {
                    let now = running.fetch_add(1, Ordering::Relaxed) + 1;
                    max.fetch_max(now, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                    running.fetch_sub(1, Ordering::Relaxed);
                };
                run_blocking(call).await.unwrap();
            })
        })
        .collect();
    // The task was joined. A call that has started is completed.
    drop(tasks);
    assert!(max.load(Ordering::Relaxed) <= 2);
}

/// Value whose drop blocks until the sender is dropped.
struct Blocks(std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>);

impl Drop for Blocks {
    fn drop(&mut self) {
        let _ = self.0.recv();
        let _ = self.1.send(());
    }
}

#[test]
fn values_whose_drop_blocks_are_dropped_elsewhere_and_only_so_many_at_once() {
    let runtime = SocketRuntime::new("dropping", 1, ThreadHooks::default()).unwrap();
    let (end_sender, ends) = channel();
    let count = CONCURRENT_DROPS_MAX + 8;
    let holds: Vec<_> = (0..count)
        .map(|_| {
            let (hold, release) = channel();
            runtime.drop_later(Blocks(release, end_sender.clone()));
            hold
        })
        .collect();
    // Worker thread and threads for blocking calls have the same name.
    wait_for("the drops", || threads("dropping") == CONCURRENT_DROPS_MAX + 1);
    // Other blocking calls are executed meanwhile.
    let (report, reports) = channel();
    let task = runtime.spawn(|_| async move {
        run_blocking(move || report.send(()).unwrap()).await.unwrap();
    });
    reports.recv_timeout(LIMIT).unwrap();
    assert!(threads("dropping") <= CONCURRENT_DROPS_MAX + 2);
    assert!(ends.try_recv().is_err());
    drop(holds);
    for _ in 0..count {
        ends.recv_timeout(LIMIT).unwrap();
    }
    drop(task);
}
