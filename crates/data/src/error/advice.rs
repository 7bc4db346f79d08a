//! Advice for an array that is refused, by its own case.

/// How [`not_finite`] ends.
pub(crate) const FINITE: &str = "expected a finite number";

/// The substitute for a number that is not finite.
pub(crate) fn not_finite(number: f32, place: usize) -> String {
    format!("{number} at place {place}, {FINITE}")
}

/// The substitute for a number that float32 cannot hold.
pub(crate) const BEYOND: &str = "beyond float32, which ends at 3.4e38";

/// Before what is expected of a column: the beginning of such an error's text.
pub(crate) const ONE_A_ROW: &str = "[rows] or [rows, 1]";

/// The file of any format that is not read.
pub(crate) const UNKNOWN_FORMAT: &str = "not a format that Overtone reads";

/// Advice for such a file.
pub(crate) const GIVE_ARRAYS_OR_TABLE: &str = "in Python, open it and give its arrays to `from_arrays`, \
                                               or its table to `from_pandas`";

/// Advice for an HDF5 file whose writer has not closed it.
pub(crate) const LEFT_OPEN: &str = "wait until the program that writes it closes it, or if that \
                                    program has ended, clear the mark with `h5clear -s FILE`";

/// An order as a sentence: with a capital letter, and a full stop.
pub(crate) fn sentence(order: &str) -> String {
    let mut rest = order.trim_end_matches('.').chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), rest.as_str())
}

/// The number of episodes, and the first that is missing.
pub(crate) fn episodes(n: usize, missing: Option<&str>) -> String {
    let absent = missing.map(|name| format!(": `{name}` is missing"));
    format!("{n}{}", absent.unwrap_or_default())
}

/// Advice for a file with another number of episodes than it should have.
pub(crate) fn of_episodes(missing: Option<&str>) -> &'static str {
    match missing {
        Some(name) if name.ends_with("_0") => {
            "number the episodes from 0 on, or if one was lost, fetch or copy the file again"
        }
        Some(_) => "fetch or copy the file again",
        None => "correct `total_episodes`, or fetch or copy the file again",
    }
}

/// The array's own name, without the groups that it is in.
pub(crate) fn own_name(dataset: &str) -> &str {
    dataset.rsplit('/').next().unwrap_or(dataset)
}

/// Advice for array `dataset` of shape `got`.
pub(crate) fn of_shape(dataset: &str, got: &[usize], expected: &str) -> String {
    let name = own_name(dataset);
    let observed = name.starts_with("obs");
    match got {
        _ if name == "n_actions" => "save one whole number, `n_actions=numpy.array(4)`".into(),
        _ if name.starts_with("action_") => {
            "save one number, or one for each number of an action".into()
        }
        _ if expected.ends_with("as its space") => {
            "record it again, or correct the space in the file's description".into()
        }
        _ if expected.starts_with("at most") => "save fewer numbers a row".into(),
        _ if expected.contains("flag") => format!("save one flag an episode, `{name}[-1]`"),
        [] => format!("save `{name}` with a row for each step"),
        _ if got[1..].contains(&0) => "save at least one number a row".into(),
        [_] if observed => format!(
            "save a column, `{name}[:, None]`, or of numbers that name states ones and zeros, \
             `numpy.eye(n)[{name}]`"
        ),
        [_] => format!(
            "save real-valued actions as a column, `{name}[:, None]`, and discrete ones as whole \
             numbers, `{name}.astype(int)`"
        ),
        [1, _] if expected.starts_with(ONE_A_ROW) => {
            format!("save one number a row, `{name}.ravel()`")
        }
        [episodes, steps, ..] if expected.starts_with(ONE_A_ROW) => {
            let one = match name.starts_with("rew") {
                true => format!(
                    "the number that counts, `{name}[:, 0]`, or the sum, `{name}.sum(axis=1)`"
                ),
                false => format!("one number a row, `{name}[:, 0]`"),
            };
            format!(
                "save {one}; if these are {episodes} episodes of {steps} steps, put one after the \
                 other in every array, `numpy.concatenate({name})`, and flag each episode's last step"
            )
        }
        [_, channels, height, width]
            if expected.starts_with("rows of") && *channels < *height.min(width) =>
        {
            format!("put the colours last, `numpy.moveaxis({name}, 1, -1)[..., :3]`")
        }
        [_, _, _, 4] if expected.starts_with("rows of") => format!(
            "save three colours, `{name}[..., :3]`, or four frames, `numpy.moveaxis({name}, -1, 1)`"
        ),
        _ if expected.starts_with("rows of") => {
            "save pictures as bytes, `[rows, height, width]`, or numbers as float32, `[rows, \
             width]`"
                .into()
        }
        _ => "save equally wide rows in all episodes".into(),
    }
}

/// Advice for array `dataset`, whose elements are `got`.
pub(crate) fn of_type(dataset: &str, got: &str, expected: &str) -> String {
    let name = own_name(dataset);
    let letter = got.trim_start_matches(['<', '>', '|', '=']).chars().next().unwrap_or(' ');
    let is_numpy = got.starts_with(['<', '>', '|', '=']);
    match letter {
        _ if expected.contains("because of `n_actions`") => {
            "save actions as whole numbers, `actions.astype(int)`, or leave `n_actions` out".into()
        }
        _ if expected.contains("because of `action_low`") => {
            "leave `action_low` and `action_high` out, or save actions as real numbers".into()
        }
        _ if got == "real numbers" => format!("save whole numbers, `{name}.astype(int)`"),
        _ if got.starts_with("a group of arrays") => {
            "save one array, its parts side by side, `numpy.concatenate(parts, axis=1)`".into()
        }
        // Lists in cells, of any length or of one.
        '[' => format!(
            "save one array of numbers: `numpy.stack({name})` of lists that are one step each, \
             `numpy.concatenate({name})` of lists of steps"
        ),
        'f' | 'g' if is_numpy => format!("save it as float32, `{name}.astype(\"float32\")`"),
        'c' if is_numpy => {
            format!("save real numbers, `numpy.stack([{name}.real, {name}.imag], -1)`")
        }
        'M' | 'm' if is_numpy => {
            format!("save seconds, `({name} - {name}[0]) / numpy.timedelta64(1, \"s\")`")
        }
        'V' if is_numpy => "save each field as an array of its own".into(),
        'U' | 'S' if is_numpy => words(name),
        _ if got.contains("string") => words(name),
        _ if got.contains("compound") => "save each field as an array of its own".into(),
        _ => format!("save it as {expected}"),
    }
}

fn words(name: &str) -> String {
    let numbers = format!("save numbers, `{name}.astype(float)`");
    match name.starts_with("rew") {
        true => numbers,
        false => format!("{numbers}, or for names `numpy.unique({name}, return_inverse=True)[1]`"),
    }
}

/// Advice for a value in array `dataset`, in the words of its error.
pub(crate) fn of_value(dataset: &str, what: &str) -> String {
    let name = own_name(dataset);
    if let (true, Some((_, advice))) = (name.ends_with("_log_probs"), what.split_once(": ")) {
        sentence(advice)
    } else if what.ends_with(FINITE) {
        "Fetch the file again, or take these steps out: it is refused as it is.".into()
    } else if what.contains(BEYOND) {
        format!("Divide `{name}` by a constant before you save it.")
    } else if what.ends_with("expected 0 or 1") {
        format!("Save 1 where the flag is set and 0 elsewhere as `{name}`.")
    } else if name == "n_actions" {
        "Correct `n_actions`, or leave it out.".into()
    } else if name.starts_with("action_") {
        "Correct `action_low` and `action_high`, or leave both out.".into()
    } else if what.contains("expected an action") || what.contains("expected one of") {
        "Number the actions from 0 on, as the task counts them.".into()
    } else {
        "Correct the array, or fetch or copy the file again.".into()
    }
}
