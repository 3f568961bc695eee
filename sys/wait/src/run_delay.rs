//! Run delay of a thread: time during which it was runnable and waited for a CPU.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Size of the read buffer in bytes: sufficient for three numbers of up to 20 digits.
const BYTES_MAX: usize = 64;

/// Run delay of one thread: the second number of `/proc/PID/task/TID/schedstat`, in nanoseconds
/// (`Documentation/scheduler/sched-stats.rst` of Linux). It is counted on kernels with
/// `CONFIG_SCHED_INFO`.
#[derive(Debug, Default)]
pub(crate) struct RunDelay(Option<File>);

impl RunDelay {
    /// Opens the run delay of the calling thread. If it cannot be opened, it reads as zero.
    pub(crate) fn for_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Returns the run delay since the thread started; zero if it is not available. Costs a system
    /// call.
    pub(crate) fn get(&self) -> Duration {
        let mut bytes = [0; BYTES_MAX];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok());
        let text = read.and_then(|len| bytes.get(..len));
        Duration::from_nanos(text.and_then(delay_ns).unwrap_or_default())
    }
}

fn delay_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Instant;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn the_second_number_is_the_delay() {
        assert_eq!(delay_ns(b"93458110 3507383 17\n"), Some(3_507_383));
        assert_eq!(delay_ns(b"0 18446744073709551615 1\n"), Some(u64::MAX));
        assert_eq!(delay_ns(b"93458110"), None);
        assert_eq!(delay_ns(b"1 -2 3"), None);
        assert_eq!(RunDelay::default().get(), Duration::ZERO);
    }

    /// Two threads share one CPU: each waits while the other runs.
    #[test]
    fn it_grows_while_another_thread_has_the_cpu() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
        let pin = move || {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set).unwrap();
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let other = thread::spawn(move || {
            pin();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let waits = thread::spawn(move || {
            pin();
            let delay = RunDelay::for_this_thread();
            let deadline = Instant::now() + Duration::from_secs(60);
            while delay.get() < Duration::from_millis(20) && Instant::now() < deadline {
                std::hint::spin_loop();
            }
            delay.get()
        });
        let delay = waits.join().unwrap();
        is_over.store(true, Ordering::Relaxed);
        other.join().unwrap();
        assert!(delay >= Duration::from_millis(20), "{delay:?}");
    }
}
