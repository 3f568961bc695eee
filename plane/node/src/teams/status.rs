//! How teams stand.

use suimon_contract::{ApiError, TeamStatus};

use crate::edit::not_found;
use crate::shared::Shared;

impl Shared {
    /// All teams, in the order in which they are configured.
    pub(crate) fn teams(&self) -> Vec<TeamStatus> {
        Vec::new()
    }

    /// One team.
    pub(crate) fn team(&self, name: &str) -> Result<TeamStatus, ApiError> {
        let mut teams = self.teams().into_iter();
        teams.find(|team| team.config.name.as_str() == name).ok_or_else(|| not_found("team", name))
    }
}
