//! What a guard asks of a write.

/// The modes by name, and what each means: must every write raise the fence, are deleted rows remembered.
const NAMES: [(&str, bool, bool); 4] = [
    ("holder", false, false),
    ("write", true, false),
    ("holder+remember", false, true),
    ("write+remember", true, true),
];

/// What a guard asks of a write.
///
/// ```
/// use fence_guard::Mode;
///
/// assert_eq!(Mode::default(), Mode::holder());
/// assert_eq!(Mode::named("write+remember"), Some(Mode::write().remember()));
/// assert_eq!(Mode::write().columns(["summary"]).name(), "write");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Every write must raise the fence.
    pub(crate) raises: bool,
    /// Those to these columns; None: all.
    pub(crate) columns: Option<Vec<String>>,
    /// The fences of deleted rows are kept.
    pub(crate) remembers: bool,
}

impl Mode {
    /// A fence that is not lower than the row's passes: one holder may write many times.
    pub fn holder() -> Self {
        Self::default()
    }

    /// Every write must raise the row's fence, so that one that forgot the fence is refused too: also one to a column that
    /// is added later, and one to the fence column alone.
    pub fn write() -> Self {
        Self {
            raises: true,
            ..Self::default()
        }
    }

    /// [`write`](Self::write), for writes to these columns only.
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.raises = true;
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The fences of rows that are deleted are kept in a table beside the guarded one, so that a row that comes back
    /// with an older fence is refused.
    pub fn remember(mut self) -> Self {
        self.remembers = true;
        self
    }

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        let (_, raises, remembers) = *NAMES.iter().find(|(known, ..)| *known == name)?;
        Some(Self {
            raises,
            remembers,
            columns: None,
        })
    }

    /// Its name: `holder`, `write`, `holder+remember` or `write+remember`.
    pub fn name(&self) -> &'static str {
        let known = NAMES
            .iter()
            .find(|(_, raises, remembers)| (*raises, *remembers) == (self.raises, self.remembers));
        known.map_or("holder", |(name, ..)| name)
    }

    /// Whether every write must raise the fence.
    pub fn raises(&self) -> bool {
        self.raises
    }
}
