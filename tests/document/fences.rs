//! The fences and permits of a document and those of its run: other numbers each time, paired in the order in which they
//! first appear.

/// The pairs. Equal places are one fence.
#[derive(Debug, Default)]
pub(super) struct Fences {
    documented: Vec<String>,
    seen: Vec<String>,
}

impl Fences {
    /// What the run types where the document has `typed`: the fences that it was given itself.
    pub(super) fn typed(&mut self, typed: &str) -> String {
        replace(typed, |digits| {
            let fence = plain(digits);
            let known = self.documented.iter().position(|known| *known == fence);
            let place = known.unwrap_or_else(|| {
                // Nobody gave it: the reader made it up, and so does the run.
                self.documented.push(fence.clone());
                self.seen.push(fence);
                self.seen.len() - 1
            });
            like(digits, &self.seen[place])
        })
    }

    /// What is to stand in the document where the run printed this and `documented` stands there. A fence that appears for
    /// the first time is that of the document; one without a partner there comes as it was printed.
    pub(super) fn printed(&mut self, documented: &str, printed: &str) -> String {
        let mut new = all(documented);
        new.retain(|fence| !self.documented.contains(fence));
        let mut new = new.into_iter();
        for fence in all(printed) {
            if !self.seen.contains(&fence) {
                self.documented.push(new.next().unwrap_or_else(|| fence.clone()));
                self.seen.push(fence);
            }
        }
        replace(printed, |digits| {
            let place = self.seen.iter().position(|fence| *fence == plain(digits));
            like(digits, place.map_or(digits, |place| &self.documented[place]))
        })
    }
}

/// The text with each fence and each permit replaced.
fn replace(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit() || c == 'p') {
        let (before, from) = rest.split_at(start);
        let digits = from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let length = permit_length(from).unwrap_or(digits.max(1));
        let (word, after) = from.split_at(length);
        replaced.push_str(before);
        if (20..=40).contains(&length) {
            replaced.push_str(&replace(word));
        } else {
            replaced.push_str(word);
        }
        rest = after;
    }
    replaced + rest
}

/// How long the permit's id is that the text begins with.
fn permit_length(text: &str) -> Option<usize> {
    let length = "permit-".len() + 32;
    let id = text.get(..length)?.strip_prefix("permit-")?;
    id.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(length)
}

/// The fences and permits in the text, each once, in order.
fn all(text: &str) -> Vec<String> {
    let mut fences = Vec::new();
    replace(text, |digits| {
        let fence = plain(digits);
        if !fences.contains(&fence) {
            fences.push(fence);
        }
        String::new()
    });
    fences
}

/// The fence in the spelling that stands for all.
fn plain(digits: &str) -> String {
    digits.trim_start_matches('0').to_string()
}

/// The fence in the spelling of `digits`: with zeros before it, or not.
fn like(digits: &str, fence: &str) -> String {
    if digits.starts_with('0') {
        format!("{fence:0>width$}", width = digits.len())
    } else {
        fence.to_string()
    }
}
