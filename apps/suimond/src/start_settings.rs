//! Settings that the daemon reads only when it starts: `[api]`, `[console]` and `[lab]`, and the
//! files that these sections name. Reports which of them have changed since.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiConfig, ConsoleConfig, HostConfig, LabConfig};
use suimond_api::{ListenerSection, ListenerSettings, ListenerSettingsRecord};

const API: &str = "[api]";
const CONSOLE: &str = "[console]";
const LAB: &str = "[lab]";

/// Settings in effect since the start of the daemon. A TCP listener that could not be used at the
/// start reads its settings again at each attempt.
pub(crate) struct StartSettings {
    api: Option<ApiConfig>,
    console: Option<ConsoleConfig>,
    lab: Option<LabConfig>,
    /// Sections of listeners that read their settings again at each attempt, at most two.
    retried: Vec<&'static str>,
    /// Files named by the sections, as they were when the daemon read them.
    files: Vec<ReadFile>,
}

/// Named file with its state when it was read.
type ReadFile = (NamedFile, Option<FileState>);

/// File named by a key of a section.
struct NamedFile {
    section: &'static str,
    key: &'static str,
    path: PathBuf,
}

/// Properties that change when a file is replaced or written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl FileState {
    /// Returns the state of the file at a path; `None` if it does not exist or cannot be queried.
    fn read(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

impl StartSettings {
    /// Returns the settings of a configuration that the daemon reads now.
    pub(crate) fn from_config(config: &HostConfig) -> Self {
        Self {
            api: config.api.clone(),
            console: config.console.clone(),
            lab: config.lab.clone(),
            retried: Vec::new(),
            files: read_files(config),
        }
    }

    /// Sets that the listener of a section reads its settings again at each attempt.
    fn set_retried(&mut self, section: &'static str) {
        self.retried.retain(|retried| *retried != section);
        self.retried.push(section);
    }

    /// Sets the settings with which a failed listener came into service, or the absence of settings
    /// that ended its attempts. `read` are the files that the settings name.
    fn set(&mut self, settings: ListenerSettings, read: Vec<ReadFile>) {
        let section = match settings {
            ListenerSettings::Api(api) => {
                self.api = api;
                API
            }
            ListenerSettings::Console(console) => {
                self.console = console;
                CONSOLE
            }
        };
        self.retried.retain(|retried| *retried != section);
        self.files.retain(|(file, _)| file.section != section);
        self.files.extend(read);
    }

    /// Returns one text for each section, and each file of an unchanged section, that has changed
    /// since the start of the daemon.
    pub(crate) fn describe_changes(&self, now: &HostConfig) -> Vec<String> {
        let sections = [
            (API, self.api != now.api),
            (CONSOLE, self.console != now.console),
            (LAB, self.lab != now.lab),
        ];
        let is_read_once = |section: &&str| !self.retried.contains(section);
        let changed = sections.into_iter().filter(|(_, is_changed)| *is_changed);
        let changed: Vec<&str> = changed.map(|(section, _)| section).filter(is_read_once).collect();
        let texts = changed.iter().map(|section| {
            format!(
                "{section} has changed since the daemon started; it takes effect when you restart \
                 the daemon"
            )
        });
        let mut texts: Vec<String> = texts.collect();
        let of_unchanged = self.files.iter().filter(|(file, state)| {
            is_read_once(&file.section)
                && !changed.contains(&file.section)
                && FileState::read(&file.path) != *state
        });
        texts.extend(of_unchanged.map(|(NamedFile { section, key, path }, _)| {
            format!(
                "the file {} ({section} {key}) has changed since the daemon started; it takes effect \
                 when you restart the daemon",
                path.display()
            )
        }));
        texts
    }
}

/// Record of the settings that the TCP listeners use.
pub(crate) struct SharedStartSettings(pub(crate) Arc<Mutex<StartSettings>>);

impl ListenerSettingsRecord for SharedStartSettings {
    fn set_retried(&self, section: ListenerSection) {
        let section = match section {
            ListenerSection::Api => API,
            ListenerSection::Console => CONSOLE,
        };
        lock_settings(&self.0).set_retried(section);
    }

    fn prepare_record(&self, settings: ListenerSettings) -> Box<dyn FnOnce() + Send> {
        let (started, read) = (Arc::clone(&self.0), read_files(&of_listener(&settings)));
        Box::new(move || lock_settings(&started).set(settings, read))
    }
}

/// Returns a configuration with only the settings of this listener.
fn of_listener(settings: &ListenerSettings) -> HostConfig {
    match settings {
        ListenerSettings::Api(api) => HostConfig { api: api.clone(), ..HostConfig::default() },
        ListenerSettings::Console(console) => {
            HostConfig { console: console.clone(), ..HostConfig::default() }
        }
    }
}

pub(crate) fn lock_settings(started: &Mutex<StartSettings>) -> MutexGuard<'_, StartSettings> {
    started.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the files that the sections name, with their present state.
fn read_files(config: &HostConfig) -> Vec<ReadFile> {
    let files = named_files(config).into_iter().map(|file| {
        let state = FileState::read(&file.path);
        (file, state)
    });
    files.collect()
}

fn named_files(config: &HostConfig) -> Vec<NamedFile> {
    let api = config.api.iter().flat_map(|api| {
        [
            (API, "tls_certificate", &api.tls_certificate),
            (API, "tls_key", &api.tls_key),
            (API, "token_file", &api.token_file),
            (API, "metrics_token_file", &api.metrics_token_file),
        ]
    });
    let console = config.console.iter().map(|console| (CONSOLE, "token_file", &console.token_file));
    api.chain(console)
        .filter_map(|(section, key, path)| Some(NamedFile { section, key, path: path.clone()? }))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn host(api: &str) -> HostConfig {
        suimon_contract::parse_toml(api, None).unwrap()
    }

    #[test]
    fn changed_sections_and_files_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["cert", "key", "token"] {
            fs::write(path(name), "at the start").unwrap();
        }
        let api = format!(
            "[api]\nlisten = \"127.0.0.1:8443\"\ntls_certificate = \"{}\"\ntls_key = \"{}\"\n\
             token_file = \"{}\"\n",
            path("cert"),
            path("key"),
            path("token")
        );
        let config = host(&api);
        let started = StartSettings::from_config(&config);
        assert_eq!(started.describe_changes(&config), [""; 0]);

        // As by a renewal: another file with the same name.
        fs::write(path("renewed"), "renewed").unwrap();
        fs::rename(path("renewed"), path("cert")).unwrap();
        let texts = started.describe_changes(&config);
        assert_eq!(texts.len(), 1, "{texts:?}");
        for part in [&path("cert"), "[api] tls_certificate", "restart the daemon"] {
            assert!(texts[0].contains(part), "{part}: {texts:?}");
        }
        let other = started.describe_changes(&host(&api.replace("8443", "8444")));
        assert!(other.len() == 1 && other[0].starts_with("[api] has changed"), "{other:?}");
        let changes = started.describe_changes(&HostConfig::default());
        assert!(changes.len() == 1 && changes[0].starts_with("[api] has changed"), "{changes:?}");
        let lab = host(&format!("{api}[lab]\nresults = \"/srv/lab\"\n"));
        let lab = started.describe_changes(&lab);
        assert!(lab[0].starts_with("[lab] has changed") && lab.len() == 2, "{lab:?}");
    }

    fn changes(record: &SharedStartSettings, now: &HostConfig) -> Vec<String> {
        lock_settings(&record.0).describe_changes(now)
    }

    #[test]
    fn settings_that_a_failed_listener_reads_later_are_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        for of in [ListenerSection::Api, ListenerSection::Console] {
            fs::write(&token, "at the start").unwrap();
            let (first, other) = (with(of, 7446, &token), with(of, 7447, &token));
            let record =
                SharedStartSettings(Arc::new(Mutex::new(StartSettings::from_config(&first))));
            assert_eq!(changes(&record, &other).len(), 1, "{of:?}: the listener is in service");

            // The listener has failed, and follows the configuration.
            record.set_retried(of);
            fs::write(&token, "another token").unwrap();
            assert_eq!(changes(&record, &first), [""; 0], "{of:?}: the file is read again");
            assert_eq!(changes(&record, &other), [""; 0], "{of:?}: the section is read again");
            let commit = record.prepare_record(settings(of, &other));
            assert_eq!(changes(&record, &first), [""; 0], "{of:?}: not in service yet");
            commit();
            assert_eq!(changes(&record, &other), [""; 0], "{of:?}");
            assert_eq!(changes(&record, &first).len(), 1, "{of:?}: in service with the others");
            fs::write(&token, "a token that is written later").unwrap();
            assert_eq!(changes(&record, &other).len(), 1, "{of:?}: a file was changed after that");

            // The section was removed before the listener came into service.
            record.set_retried(of);
            let without = HostConfig::default();
            record.prepare_record(settings(of, &without))();
            assert_eq!(changes(&record, &without), [""; 0], "{of:?}");
            assert_eq!(changes(&record, &first).len(), 1, "{of:?}: it is not tried again");
        }
    }

    /// Returns a configuration with the section of a listener only.
    fn with(section: ListenerSection, port: u16, token: &Path) -> HostConfig {
        let (listen, token_file) = (format!("127.0.0.1:{port}"), Some(token.to_owned()));
        match section {
            ListenerSection::Api => {
                let (tls_certificate, tls_key, metrics_token_file) = (None, None, None);
                let api =
                    ApiConfig { listen, tls_certificate, tls_key, token_file, metrics_token_file };
                HostConfig { api: Some(api), ..HostConfig::default() }
            }
            ListenerSection::Console => {
                let console = ConsoleConfig { listen, token_file };
                HostConfig { console: Some(console), ..HostConfig::default() }
            }
        }
    }

    fn settings(section: ListenerSection, config: &HostConfig) -> ListenerSettings {
        match section {
            ListenerSection::Api => ListenerSettings::Api(config.api.clone()),
            ListenerSection::Console => ListenerSettings::Console(config.console.clone()),
        }
    }
}
