//! Settings that the daemon reads only when it starts: `[api]`, `[console]` and `[lab]`, and the files
//! that these sections name. Reports which of them have changed since.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiConfig, ConsoleConfig, HostConfig, LabConfig};
use suimond_api::ApiSnapshot;

/// Settings in effect since the start of the daemon. A listener of the API that could not be used then
/// reads its settings again later.
pub(crate) struct StartSettings {
    api: Option<ApiConfig>,
    console: Option<ConsoleConfig>,
    lab: Option<LabConfig>,
    /// Files named by the sections, as they were when the daemon read them.
    files: Vec<ReadFile>,
}

/// Named file with its state when it was read.
type ReadFile = (NamedFile, Option<FileState>);

/// Settings of the API listener.
pub(crate) struct ApiSettings {
    api: ApiConfig,
    files: Vec<ReadFile>,
}

impl ApiSettings {
    /// Returns the settings that the listener reads now.
    pub(crate) fn read_now(api: &ApiConfig) -> Self {
        let config = HostConfig { api: Some(api.clone()), ..HostConfig::default() };
        Self { api: api.clone(), files: read_files(&config) }
    }
}

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
    pub(crate) fn read_now(config: &HostConfig) -> Self {
        Self {
            api: config.api.clone(),
            console: config.console.clone(),
            lab: config.lab.clone(),
            files: read_files(config),
        }
    }

    /// Sets the settings with which the API listener came into service.
    pub(crate) fn set_api(&mut self, read: ApiSettings) {
        self.api = Some(read.api);
        self.files.retain(|(file, _)| file.section != "[api]");
        self.files.extend(read.files);
    }

    /// Returns one text for each section, and each file of an unchanged section, that has changed
    /// since the start of the daemon.
    pub(crate) fn changes(&self, now: &HostConfig) -> Vec<String> {
        let sections = [
            ("[api]", self.api != now.api),
            ("[console]", self.console != now.console),
            ("[lab]", self.lab != now.lab),
        ];
        let changed = sections.into_iter().filter(|(_, is_changed)| *is_changed);
        let mut texts: Vec<String> = changed
            .clone()
            .map(|(section, _)| {
                format!(
                    "{section} has changed since the daemon started; it takes effect when you \
                     restart the daemon"
                )
            })
            .collect();
        let of_unchanged = self.files.iter().filter(|(file, state)| {
            changed.clone().all(|(section, _)| section != file.section)
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

/// Returns the function that records the settings of the API listener when it comes into service.
pub(crate) fn api_snapshot(started: &Arc<Mutex<StartSettings>>) -> ApiSnapshot {
    let started = Arc::clone(started);
    Arc::new(move |api: &ApiConfig| -> Box<dyn FnOnce() + Send> {
        let (started, read) = (Arc::clone(&started), ApiSettings::read_now(api));
        Box::new(move || lock_settings(&started).set_api(read))
    })
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
            ("[api]", "tls_certificate", &api.tls_certificate),
            ("[api]", "tls_key", &api.tls_key),
            ("[api]", "token_file", &api.token_file),
            ("[api]", "metrics_token_file", &api.metrics_token_file),
        ]
    });
    let console =
        config.console.iter().map(|console| ("[console]", "token_file", &console.token_file));
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
        let started = StartSettings::read_now(&config);
        assert_eq!(started.changes(&config), [""; 0]);

        // As by a renewal: another file with the same name.
        fs::write(path("renewed"), "renewed").unwrap();
        fs::rename(path("renewed"), path("cert")).unwrap();
        let texts = started.changes(&config);
        assert_eq!(texts.len(), 1, "{texts:?}");
        for part in [&path("cert"), "[api] tls_certificate", "restart the daemon"] {
            assert!(texts[0].contains(part), "{part}: {texts:?}");
        }
        let other = started.changes(&host(&api.replace("8443", "8444")));
        assert!(other.len() == 1 && other[0].starts_with("[api] has changed"), "{other:?}");
        let changes = started.changes(&HostConfig::default());
        assert!(changes.len() == 1 && changes[0].starts_with("[api] has changed"), "{changes:?}");
        let lab = host(&format!("{api}[lab]\nresults = \"/srv/lab\"\n"));
        let lab = started.changes(&lab);
        assert!(lab[0].starts_with("[lab] has changed") && lab.len() == 2, "{lab:?}");

        // The listener could not be used before, and has read the new files.
        let mut later = StartSettings::read_now(&HostConfig::default());
        assert_eq!(later.changes(&config).len(), 1);
        later.set_api(ApiSettings::read_now(config.api.as_ref().unwrap()));
        assert_eq!(later.changes(&config), [""; 0]);
        fs::write(path("token"), "another token").unwrap();
        assert_eq!(later.changes(&config).len(), 1, "a file was changed after that");
    }
}
