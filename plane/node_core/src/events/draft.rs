//! Events before they have a sequence number.

use std::collections::BTreeMap;

use suimon_contract::EventKind;

use crate::texts::shorten;

/// Maximum length of the text of an event and of the value of a field, in bytes. Values contain
/// lists, such as the devices of a VM or the CPUs of a host.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// Maximum length of the subject, in bytes.
const SUBJECT_BYTES_MAX: usize = 1 << 10;
/// Maximum length of the text of a withheld event without fields, in bytes.
const BRIEF_TEXT_BYTES_MAX: usize = 256;
/// Maximum number of fields of an event.
const FIELDS_MAX: usize = 32;

/// Event without a sequence number.
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// Kind, which determines number and severity.
    pub kind: EventKind,
    /// Object of the event, like `nic/web`.
    pub subject: String,
    /// Description in complete English sentences.
    pub text: String,
    /// Values of the event, by field name.
    pub fields: BTreeMap<String, String>,
    /// Rate limiting of the event; `None` if only the operator can cause it.
    pub(super) rate_limit: Option<RateLimitKey>,
    /// Time of occurrence, if it differs from the time of logging.
    pub(super) time_unix_ms: Option<u64>,
}

impl EventDraft {
    /// Creates an event that only the operator can cause.
    #[expect(clippy::needless_pass_by_value, reason = "callers have keys, texts and numbers")]
    pub fn new(kind: EventKind, subject: impl ToString, text: impl Into<String>) -> Self {
        let fields = BTreeMap::new();
        let (subject, text) = (subject.to_string(), text.into());
        Self { kind, subject, text, fields, rate_limit: None, time_unix_ms: None }
    }

    /// Marks an event that parties other than the operator (a guest, a client, a neighbour) can
    /// cause at any rate. [`EventLog::append`](super::EventLog::append) merges such events of one
    /// subject and kind, or of kinds that report the same state.
    pub fn rate_limited(self) -> Self {
        self.rate_limited_times(1)
    }

    /// Like [`rate_limited`](Self::repeated), for an event that represents `count` occurrences.
    pub fn rate_limited_times(self, count: u64) -> Self {
        let repeat = RateLimitKey { count, ..RateLimitKey::for_kind(self.kind) };
        Self { rate_limit: Some(repeat), ..self }
    }

    /// Shortens texts, so that an event fits into a record of the state store, whatever names and
    /// errors of other parties it contains.
    pub(super) fn into_shortened(mut self) -> Self {
        shorten(&mut self.subject, SUBJECT_BYTES_MAX);
        let text_max = match self.rate_limit {
            // Room for the sentence about merged events.
            Some(_) => TEXT_BYTES_MAX - 256,
            None => TEXT_BYTES_MAX,
        };
        shorten(&mut self.text, text_max);
        while self.fields.len() > FIELDS_MAX {
            self.fields.pop_last();
        }
        for value in self.fields.values_mut() {
            shorten(value, TEXT_BYTES_MAX);
        }
        self
    }

    /// Removes the fields and shortens the text to [`BRIEF_TEXT_BYTES_MAX`], to reduce the memory
    /// of a withheld event.
    pub(super) fn abbreviated(mut self) -> Self {
        self.fields = BTreeMap::new();
        shorten(&mut self.text, BRIEF_TEXT_BYTES_MAX);
        self
    }

    /// Returns the size of subject, text and fields in bytes.
    pub(super) fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(field, value)| field.len() + value.len());
        self.subject.len() + self.text.len() + fields.sum::<usize>()
    }

    /// Adds a named value to the event's `fields`.
    #[expect(clippy::needless_pass_by_value, reason = "callers have keys, texts and numbers")]
    pub fn with(mut self, field: &str, value: impl ToString) -> Self {
        self.fields.insert(field.to_owned(), value.to_string());
        self
    }
}

/// Set of event kinds that are limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RateLimitGroup {
    /// Events of the kind with this id.
    Kind(u32),
    /// Events that report the state with this name.
    State(&'static str),
}

/// Rate limit of an event: which other events are limited together with it, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimitKey {
    /// Number of occurrences that this event represents; 1 unless the event is already a summary.
    pub(crate) count: u64,
    pub(crate) group: RateLimitGroup,
    /// Field that further separates events of the same group and subject; `None`: no field.
    pub(crate) field: Option<&'static str>,
}

impl RateLimitKey {
    /// Returns the rate limit of a single event of a kind.
    pub(crate) fn for_kind(kind: EventKind) -> Self {
        let (group, field) = match kind {
            EventKind::NicConnected
            | EventKind::NicDisconnected
            | EventKind::NicDriverReady
            | EventKind::NicFailed
            | EventKind::NicRecovered
            | EventKind::UplinkLinkUp
            | EventKind::UplinkLinkDown
            | EventKind::UplinkFailed
            | EventKind::UplinkRecovered
            | EventKind::DiskConnected
            | EventKind::DiskDisconnected
            | EventKind::DiskDriverReady => (RateLimitGroup::State("link"), None),
            EventKind::VmDevicePlugged | EventKind::VmDeviceUnplugged => {
                (RateLimitGroup::State("plug"), Some("device"))
            }
            EventKind::TeamUp | EventKind::TeamDown => (RateLimitGroup::State("team"), None),
            EventKind::TeamMemberFailed | EventKind::TeamMemberUsable => {
                (RateLimitGroup::State("member"), Some("member"))
            }
            EventKind::LacpOutOfSync | EventKind::LacpInSync => {
                (RateLimitGroup::State("sync"), Some("member"))
            }
            EventKind::LacpLooped | EventKind::LacpLoopEnded => {
                (RateLimitGroup::State("loop"), Some("member"))
            }
            EventKind::DiskFull
            | EventKind::DiskHasSpace
            | EventKind::StoreNearlyFull
            | EventKind::StoreHasSpace
            | EventKind::VmPausedForSpace
            | EventKind::VmContinuedWithSpace => (RateLimitGroup::State("space"), None),
            EventKind::StoreFailed | EventKind::StoreRecovered => {
                (RateLimitGroup::State("store"), None)
            }
            EventKind::LacpPartnerChanged => (RateLimitGroup::Kind(kind.id()), Some("member")),
            EventKind::NodeOfOtherVersion
            | EventKind::NodeUnaccounted
            | EventKind::SharedPromiseRefused
            | EventKind::SharedPolicyInUse
            | EventKind::SharedPolicyUnknown => (RateLimitGroup::Kind(kind.id()), Some("node")),
            _ => (RateLimitGroup::Kind(kind.id()), None),
        };
        Self { count: 1, group, field }
    }
}
