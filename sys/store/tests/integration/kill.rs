//! Kills a process repeatedly during its commits, and checks the store after each kill.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use suimon_ports::StateStore;
use suimon_store::FileStore;
use tempfile::TempDir;

const DIRECTORY: &str = "SUIMON_STORE_TEST_DIRECTORY";
const KILLS: u32 = 45;
/// Number of commits that the killed processes must complete in total.
const COMMITS: u32 = 100;
/// Maximum number of kills. A loaded machine commits less between two kills and needs more of them.
const KILLS_MAX: u32 = 900;
/// Number of kills after which the directory starts empty, so that creation of the file is
/// interrupted too.
const FRESH_EVERY: u32 = 5;

fn counter(store: &FileStore, table: &str) -> u64 {
    let value = store.read(table, "counter").unwrap().unwrap_or_default();
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// Commits until it is killed. Each batch increments a counter in two tables and adds an entry of
/// varying size; a completed commit is acknowledged on standard output.
#[test]
#[ignore = "child process of acknowledged_commits_survive_a_kill_and_none_is_partial"]
fn writer() {
    let directory = std::env::var(DIRECTORY).unwrap();
    let store = FileStore::open(Path::new(&directory)).unwrap();
    let mut out = std::io::stdout();
    for count in counter(&store, "first") + 1.. {
        let value = Some(count.to_le_bytes().to_vec());
        let filler = vec![count as u8; (count as usize * 37) % 9000];
        store
            .commit(&[
                ("first", "counter".to_owned(), value.clone()),
                ("log", format!("{count:020}"), Some(filler)),
                ("log", format!("{:020}", count.saturating_sub(50)), None),
                ("second", "counter".to_owned(), value),
            ])
            .unwrap();
        writeln!(out, "\nack {count}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn acknowledged_commits_survive_a_kill_and_none_is_partial() {
    let mut directory = TempDir::new().unwrap();
    let (mut acknowledged, mut total) = (0, 0);
    for round in 0..KILLS_MAX {
        if round >= KILLS && total > COMMITS {
            break;
        }
        if round % FRESH_EVERY == 0 {
            directory = TempDir::new().unwrap();
            acknowledged = 0;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::writer", "--exact", "--ignored", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // The delays range from before the store is opened to the middle of its work. On a loaded
        // machine the process may not have started by then, so every other round waits for the
        // first commit.
        let first = (round % 2 == 1).then(|| lines.find(|line| line.starts_with("ack "))).flatten();
        std::thread::sleep(Duration::from_micros(u64::from(round * 7919 % 60_000)));
        child.kill().unwrap();
        for line in first.into_iter().chain(lines) {
            if let Some(count) = line.strip_prefix("ack ") {
                acknowledged = count.parse().unwrap_or(acknowledged);
                total += 1;
            }
        }
        child.wait().unwrap();
        let store = FileStore::open(directory.path()).unwrap();
        let (first, second) = (counter(&store, "first"), counter(&store, "second"));
        assert_eq!(first, second, "half a batch after kill {round}");
        assert!(first >= acknowledged, "kill {round}: {acknowledged} acknowledged, {first} found");
        let log = store.scan("log", "", 1000).unwrap();
        assert_eq!(log.len() as u64, first.min(50), "after kill {round}");
        assert!(log.iter().all(|(_, filler)| filler.windows(2).all(|pair| pair[0] == pair[1])));
        acknowledged = first;
    }
    assert!(total > COMMITS, "only {total} commits were made: the kills came too early");
}
