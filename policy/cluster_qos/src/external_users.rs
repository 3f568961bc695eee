//! External users of the store (other clusters or nodes) that the leader has detected.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::notice::ExternalUser;

/// Maximum number of recorded users. Further users are ignored while all recorded ones are still
/// detected: anyone who can create files in the store's directory can create any number of names.
const USERS_MAX: usize = 64;

/// Time since its last detection after which a user may be replaced by another one.
const UNUSED_AFTER: Duration = Duration::from_secs(60);

/// Users by name, each with the time of its last detection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExternalUsers(BTreeMap<String, (ExternalUser, Time)>);

impl ExternalUsers {
    /// Records that a user was detected at `now`. Returns true if the user was not recorded before,
    /// false if it was or if the table is full.
    pub(crate) fn insert(&mut self, now: Time, user: &ExternalUser) -> bool {
        if let Some(entry) = self.0.get_mut(&user.name) {
            *entry = (user.clone(), now);
            return false;
        }
        if self.0.len() >= USERS_MAX {
            self.0.retain(|_, (_, last_seen)| now.since(*last_seen) < UNUSED_AFTER);
        }
        let has_room = self.0.len() < USERS_MAX;
        if has_room {
            self.0.insert(user.name.clone(), (user.clone(), now));
        }
        has_room
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ExternalUser> {
        self.0.values().map(|(user, _)| user)
    }
}
