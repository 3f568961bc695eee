//! Tests of threads on the CPUs of this machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::Duration;

use proptest::prelude::*;
use rustix::thread::{current_timer_slack, sched_getcpu};

use super::*;

#[test]
fn a_worker_runs_pinned_named_and_without_timer_slack() {
    for cpu in WorkerThreads.allowed_cpus() {
        let (send, receive) = channel();
        let body = move |wait: Box<dyn WaitSet>| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            let set = sched_getaffinity(None).unwrap();
            let slack = current_timer_slack().unwrap();
            send.send((sched_getcpu(), set, name, slack, wait.now())).unwrap();
        };
        let before = WorkerThreads.now();
        let (_, join) =
            WorkerThreads.start("processor-17-of-many", cpu.into(), Box::new(body)).unwrap();
        join();
        let (cpu_number, set, name, slack, now) = receive.recv().unwrap();
        assert_eq!(cpu_number, usize::from(cpu));
        assert_eq!((set.count(), set.is_set(usize::from(cpu))), (1, true));
        assert_eq!(name, "processor-17-of");
        assert_eq!(slack, 1);
        assert!(now >= before, "one clock");
    }
}

#[test]
fn a_worker_without_a_place_may_run_on_any_cpu_even_if_its_starter_may_not() {
    let cpus = WorkerThreads.allowed_cpus();
    let mut set = CpuSet::new();
    set.set(usize::from(cpus[0]));
    let (send, receive) = channel();
    let starter = move || {
        sched_setaffinity(None, &set).unwrap();
        let body = move |_: Box<dyn WaitSet>| send.send(sched_getaffinity(None).unwrap()).unwrap();
        let (_, join) =
            WorkerThreads.start("floating", CpuAffinity::Floating, Box::new(body)).unwrap();
        join();
    };
    std::thread::spawn(starter).join().unwrap();
    let set = receive.recv().unwrap();
    let permitted = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    assert!(permitted.eq(cpus.into_iter().map(usize::from)));
}

#[test]
fn a_worker_sleeps_until_its_waker_calls_and_the_waker_outlives_it() {
    let cpu = WorkerThreads.allowed_cpus()[0];
    let body = |mut wait: Box<dyn WaitSet>| wait.wait(Some(Time::NEVER), &mut Vec::new()).unwrap();
    let (waker, join) = WorkerThreads.start("sleeper", cpu.into(), Box::new(body)).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    waker.wake();
    join();
    waker.wake();
}

#[test]
fn a_cpu_that_does_not_exist_is_refused_with_the_choice() {
    for cpu in [u16::MAX, 1023, 1024] {
        let error = WorkerThreads.start("x", cpu.into(), Box::new(|_| ())).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(text.contains(&format!("CPU {cpu} ")), "{text}");
        assert!(text.contains(&ranges(&WorkerThreads.allowed_cpus())), "{text}");
    }
}

#[test]
fn a_pinned_caller_sees_all_cpus() {
    let cpus = WorkerThreads.allowed_cpus();
    let (send, receive) = channel();
    let body = move |_| send.send(WorkerThreads.allowed_cpus()).unwrap();
    let (_, join) = WorkerThreads.start("x", cpus[0].into(), Box::new(body)).unwrap();
    join();
    assert_eq!(receive.recv().unwrap(), cpus);
}

#[test]
fn joining_passes_a_panic_on() {
    let cpu = WorkerThreads.allowed_cpus()[0];
    let (_, join) =
        WorkerThreads.start("x", cpu.into(), Box::new(|_| panic!("on purpose"))).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(join)).is_err());
}

#[test]
fn names_that_no_thread_can_have_are_refused() {
    for name in ["", "a\0b"] {
        let error =
            WorkerThreads.start(name, CpuAffinity::Pinned(0), Box::new(|_| ())).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn ranges_read_like_the_kernels_lists() {
    assert_eq!(ranges(&[]), "none");
    assert_eq!(ranges(&[3]), "3");
    assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    assert_eq!(ranges(&[u16::MAX - 1, u16::MAX]), "65534-65535");
}

proptest! {
    #[test]
    fn any_name_is_truncated_at_a_character_boundary(name in "\\PC{1,20}") {
        let cut = thread_name(&name).unwrap();
        prop_assert!(cut.len() <= NAME_BYTES_MAX);
        prop_assert!(name.starts_with(&cut));
        let next = name[cut.len()..].chars().next().map_or(1, char::len_utf8);
        prop_assert!(cut.len() + next > NAME_BYTES_MAX || cut == name);
    }
}
