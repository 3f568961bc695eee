//! Repeated execution of one job, each time with a fault of another operation of the store.

use suimon_rig::{FaultEffect, Output, StoreCounts, StoreFault, StoreOperation, run};

use super::*;

/// File with the content of the disk before the job, in the rig's folder.
pub(super) const EXPECTED: &str = "expected.raw";

/// Placeholder in a command for a size above that of the disk.
pub(super) const LARGER: &str = "LARGER";

/// Job or change of one disk, as a command.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) format: Format,
    /// Creates the preconditions of the job, without injected faults.
    pub(super) prepare: fn(&mut Host, &mut Content),
    pub(super) words: &'static [&'static str],
    /// Checks the result of a successful job, and undoes it.
    pub(super) undo: fn(&mut Host),
    /// Part of the names of the files that an error may name.
    pub(super) file: &'static str,
}

impl Host {
    pub(super) fn get(&self, disk: &str) -> Value {
        self.daemon.get(&format!("/1.0/disks/{disk}")).unwrap()
    }

    /// Removes the files of the store whose names begin with a prefix.
    pub(super) fn remove_files(&self, prefix: &str) {
        for file in self.files().iter().filter(|file| file.starts_with(prefix)) {
            fs::remove_file(format!("{}/{file}", self.store.files())).unwrap();
        }
    }

    /// Waits until the daemon has noticed that the clients' connections have ended.
    pub(super) fn wait_unused(&self, disk: &str) {
        wait_until("closed connections of clients", PATIENCE, || {
            Ok(self.get(disk)["nbd"]["clients"] == 0)
        })
        .unwrap();
    }
}

/// Job with its disk, and the results so far.
struct Trial {
    job: Job,
    host: Host,
    content: Content,
    /// Number of runs with a fault, and descriptions of those that succeeded.
    runs: u32,
    succeeded: Vec<String>,
    /// Descriptions of the runs with a wrong result.
    wrong: Vec<String>,
}

impl Trial {
    fn new(job: Job) -> Self {
        let host = Host::start(&[job.format]);
        let mut content = Content::zeros();
        let mut client = host.connect("d");
        for chunk in (0..64).chain(200..210) {
            let value = content.next();
            client.write(chunk * CHUNK, &vec![value; CHUNK as usize], false).unwrap();
            content.handle(chunk * CHUNK, CHUNK, value, true);
        }
        // Blocks without data, for compaction.
        client.write_zeroes(32 * CHUNK, 32 * CHUNK).unwrap();
        content.handle(32 * CHUNK, 32 * CHUNK, 0, true);
        client.flush().unwrap();
        drop(client);
        fs::write(host.rig.path(EXPECTED), content.bytes()).unwrap();
        Self { job, host, content, runs: 0, succeeded: Vec::new(), wrong: Vec::new() }
    }

    fn prepare(&mut self) -> Vec<String> {
        (self.job.prepare)(&mut self.host, &mut self.content);
        self.host.wait_unused("d");
        self.host.store.clear().unwrap();
        self.host.files()
    }

    fn run_job(&self) -> Output {
        let bytes = self.host.get("d")["size_bytes"].as_u64().unwrap() + MIB;
        let larger = bytes.to_string();
        let words = self.job.words.iter().map(|word| if *word == LARGER { &larger } else { *word });
        self.host.daemon.cli(&words.collect::<Vec<_>>()).unwrap()
    }

    /// Runs the job without a fault and returns the numbers of operations.
    fn count(&mut self) -> StoreCounts {
        self.prepare();
        let ended = self.run_job();
        assert!(ended.is_ok(), "{}: {}", self.job.name, ended.stderr);
        let counts = self.host.store.counts().unwrap();
        self.check_content();
        (self.job.undo)(&mut self.host);
        counts
    }

    fn check_content(&mut self) {
        if self.host.get("d")["state"] == "failed" {
            // The failed operation was part of opening the disk after the job. The daemon would
            // retry later.
            self.host.daemon.ok(&["disk", "reopen", "d"]).unwrap();
        }
        self.host.wait_ready("d");
        let mut client = self.host.connect("d");
        self.content.check(&mut client, self.job.name);
    }

    /// Runs the job with a fault of the `nth` operation of a kind, and checks the result.
    fn fail_nth(&mut self, operation: StoreOperation, nth: u64) {
        let before = self.prepare();
        let what = format!("{}: {} {nth}", self.job.name, operation.name());
        self.host
            .store
            .inject(&StoreFault::new(operation, FaultEffect::Error(5)).nth(nth))
            .unwrap();
        let ended = self.run_job();
        let faults = self.host.store.counts().unwrap().faults();
        self.host.store.clear().unwrap();
        println!("{what}: {faults} faults, {}: {}", ended.code, ended.stderr.trim());
        self.runs += 1;
        // A completed snapshot is not undone if the disk cannot be opened afterwards.
        if ended.is_ok() || ended.stderr.contains("the snapshot was taken") {
            if faults > 0 {
                self.succeeded.push(what);
            }
            self.check_content();
            return (self.job.undo)(&mut self.host);
        }
        // A repair reports an unreadable range as a finding.
        let said = &format!("{}{}", ended.stderr, ended.stdout);
        let is_named = said.contains(self.job.file) || said.contains(self.host.store.path());
        if !said.contains("os error 5") || !is_named {
            self.wrong.push(format!("{what}: the error does not name file and reason: {said}"));
        }
        self.check_content();
        let has_note = self.host.files().iter().any(|file| file.ends_with(".suimon-merge"));
        if operation == StoreOperation::Remove || has_note {
            // The next daemon removes files that could not be removed. The record of a merge
            // remains as long as the modification time of the parent may not be durable.
            self.host.restart();
            self.host.wait_ready("d");
        }
        if self.job.file == "broken.vhdx" {
            self.repair_again(&what);
        }
        let after = self.host.files();
        if after != before {
            self.wrong.push(format!("{what}: {before:?} became {after:?}: {said}"));
            for file in after.iter().filter(|file| !before.contains(file)) {
                fs::remove_file(format!("{}/{file}", self.host.store.files())).unwrap();
            }
        }
    }

    /// Checks that another repair completes a failed one.
    fn repair_again(&mut self, what: &str) {
        let repaired = self.run_job();
        let checked = self.host.daemon.cli(&["image", "check", "--store", "s", "broken.vhdx"]);
        let checked = checked.unwrap();
        if !repaired.is_ok() || !checked.is_ok() {
            self.wrong.push(format!("{what}: {}{}", repaired.stderr, checked.stderr));
        }
        let backups = self.host.files();
        for file in backups.iter().filter(|file| file.starts_with("broken.vhdx.")) {
            if file.contains("unfinished") {
                self.wrong.push(format!("{what}: {file} is left"));
            }
            fs::remove_file(format!("{}/{file}", self.host.store.files())).unwrap();
        }
    }

    fn end(mut self) {
        self.host.restart();
        self.check_content();
        let name = self.job.name;
        println!("{name}: {} runs; {:?} have succeeded", self.runs, self.succeeded);
        self.host.wait_unused("d");
        self.host.daemon.stop().unwrap();
        let file = format!("{}/d.{}", self.host.store.files(), self.job.format.format);
        if self.job.format.format == "vhdx" {
            run(&["qemu-img", "check", "-f", "vhdx", &file]).unwrap();
        }
        self.host.remove_files("broken.");
        let files = self.host.files();
        assert!(files.iter().all(|file| file.starts_with("d")), "{name}: {files:?}");
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

/// Runs a job once for each operation that `select` returns, given the kind and number of
/// operations.
pub(super) fn fail_operations(job: Job, select: impl Fn(StoreOperation, u64) -> Vec<u64>) {
    let mut trial = Trial::new(job);
    let counts = trial.count();
    println!("{}: {counts:?}", job.name);
    for operation in StoreOperation::ALL {
        for nth in select(*operation, counts.of(*operation)) {
            trial.fail_nth(*operation, nth);
        }
    }
    trial.end();
}
