//! All sentences about the differences between two protocols of a suite, as one text.

use overtone_core::{
    Task,
    protocol::{Play, Setting, Trained},
};

/// An agent that uses every setting (`all_matter`), or only the settings that all agents use.
pub fn trained(play: &Play, task: Task, settings: &'static [Setting], all_matter: bool) -> Trained {
    Trained {
        play: play.clone(),
        task,
        settings,
        returns: Some([0.0, 40.5]),
        reads_returns: all_matter,
        own_action_order: all_matter,
        has_density: all_matter,
        reads_global_timestep: all_matter,
    }
}

/// The sentences for both directions between two protocols that differ in every setting. `task` is
/// the task of an agent by [`trained`]'s `all_matter`.
pub fn text(
    [one, other]: &[Play; 2],
    task: impl Fn(bool) -> Task,
    settings: &'static [Setting],
) -> String {
    let sentences = |from: &Play, to: &Play, all_matter, targets: &[f32]| -> String {
        let agent = trained(from, task(all_matter), settings, all_matter);
        let deviations = agent.deviations(to, targets).into_iter().map(|deviation| {
            let idle = deviation.idle.map(|idle| format!("  changes nothing: {idle}\n"));
            format!("{}\n{}", deviation.difference, idle.unwrap_or_default())
        });
        let targets = agent.differences(from, targets).into_iter();
        deviations.chain(targets.map(|found| format!("{found}\n"))).collect()
    };
    let there = sentences(one, other, true, &[32.5, 41.0, -1.0]);
    let back = sentences(other, one, true, &[32.5]);
    let whole = sentences(one, other, true, &[32.0]);
    let few = sentences(one, other, false, &[32.0, 41.0]);
    let (one, other) = (&one.name, &other.name);
    format!(
        "{one} to {other}\n{there}\n{other} to {one}\n{back}\nwhole numbers\n{whole}\nan agent that \
         few settings matter to\n{few}\n"
    )
}
