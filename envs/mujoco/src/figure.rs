//! [`Figure`]: the positions of a robot's limbs, for drawing.
//!
//! The robots move in a plane, and their limbs are capsules. Bodies, joints and capsules are read
//! from Gymnasium's model file. Positions go through the same chain of rotations and translations as
//! in MuJoCo's `mj_kinematics` (`tests/figure.rs` compares them).

use std::fs;

use overtone_env::Capsule;
use roxmltree::{Document, Node};

use crate::{MujocoError, Revision, Robot, packages};

/// The limbs of a robot and the joints between them.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Bodies from the torso outwards; a parent comes before its children.
    bodies: Vec<Body>,
    motors: Vec<String>,
    n_positions: usize,
}

#[derive(Clone, Debug)]
struct Body {
    parent: Option<usize>,
    /// Position in the parent's frame, `[x, z]`.
    place: [f64; 2],
    joints: Vec<Joint>,
    /// Capsules in the body's frame.
    capsules: Vec<Capsule>,
}

#[derive(Clone, Copy, Debug)]
enum Joint {
    /// Translation along `[x, z]`, relative to the position `from`.
    Slide { along: [f64; 2], from: f64 },
    /// Rotation around a point in the body's frame. `sign` 1 turns z towards x.
    Hinge { around: [f64; 2], sign: f64 },
}

/// A frame in the plane: its origin and its rotation (z towards x).
#[derive(Clone, Copy)]
struct Frame {
    origin: [f64; 2],
    turn: f64,
}

impl Frame {
    /// Converts a direction from the frame to the world.
    fn turned(&self, [x, z]: [f64; 2]) -> [f64; 2] {
        let (sin, cos) = self.turn.sin_cos();
        [x * cos + z * sin, z * cos - x * sin]
    }

    /// Converts a point from the frame to the world.
    fn place(&self, point: [f64; 2]) -> [f64; 2] {
        let [x, z] = self.turned(point);
        [self.origin[0] + x, self.origin[1] + z]
    }
}

impl Figure {
    /// Reads the model of `robot`.
    ///
    /// # Errors
    /// When the model is missing, or is not a planar robot of capsules with the expected joints and
    /// motors.
    pub fn load(robot: &Robot, revision: Revision) -> Result<Self, MujocoError> {
        let path = packages::model(robot, revision)?;
        let wrong = |message: String| MujocoError::BadModel { path: path.clone(), message };
        let text = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let document = Document::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let mut figure =
            Self { bodies: Vec::new(), motors: Vec::new(), n_positions: robot.n_positions() };
        for node in document.descendants().filter(|node| node.has_tag_name("worldbody")) {
            figure.add(node, None).map_err(wrong)?;
        }
        let motors = document.descendants().filter(|node| node.has_tag_name("motor"));
        figure.motors = motors.filter_map(|node| node.attribute("joint")).map(plain).collect();
        let n_joints: usize = figure.bodies.iter().map(|body| body.joints.len()).sum();
        if n_joints != robot.n_positions() || figure.motors.len() != robot.action_width() {
            let (n_motors, width) = (figure.motors.len(), robot.action_width());
            return Err(wrong(format!(
                "{n_joints} joints and {n_motors} motors, expected {} and {width}",
                robot.n_positions()
            )));
        }
        Ok(figure)
    }

    /// The name of each motor's joint, in the order of an action's numbers.
    pub fn motors(&self) -> &[String] {
        &self.motors
    }

    /// The capsules for these positions.
    ///
    /// # Panics
    /// When the number of positions is not `Robot::n_positions`.
    pub fn capsules(&self, positions: &[f64]) -> Vec<Capsule> {
        assert_eq!(positions.len(), self.n_positions, "positions of this robot");
        let mut positions = positions.iter();
        let mut frames: Vec<Frame> = Vec::with_capacity(self.bodies.len());
        let mut capsules = Vec::new();
        for body in &self.bodies {
            let mut frame = match body.parent {
                None => Frame { origin: body.place, turn: 0.0 },
                Some(parent) => {
                    let parent = frames[parent];
                    Frame { origin: parent.place(body.place), turn: parent.turn }
                }
            };
            for (joint, position) in body.joints.iter().zip(positions.by_ref()) {
                match *joint {
                    Joint::Slide { along, from } => {
                        let [x, z] = frame.turned(along);
                        frame.origin[0] += (position - from) * x;
                        frame.origin[1] += (position - from) * z;
                    }
                    Joint::Hinge { around, sign } => {
                        let anchor = frame.place(around);
                        frame.turn += sign * position;
                        let [x, z] = frame.turned(around);
                        frame.origin = [anchor[0] - x, anchor[1] - z];
                    }
                }
            }
            capsules.extend(body.capsules.iter().map(|capsule| Capsule {
                ends: capsule.ends.map(|end| frame.place(end)),
                radius: capsule.radius,
            }));
            frames.push(frame);
        }
        capsules
    }

    /// Adds the bodies inside `node`, which is the body `parent` or the world.
    fn add(&mut self, node: Node<'_, '_>, parent: Option<usize>) -> Result<(), String> {
        for child in node.children().filter(|child| child.has_tag_name("body")) {
            let joints = child.children().filter(|node| node.has_tag_name("joint"));
            let capsules = child.children().filter(|node| {
                node.has_tag_name("geom") && node.attribute("type") == Some("capsule")
            });
            let place = flat(&numbers(child, "pos", &[0.0; 3])?);
            let joints = joints.map(joint).collect::<Result<_, _>>()?;
            let capsules = capsules.map(capsule).collect::<Result<_, _>>()?;
            self.bodies.push(Body { parent, place, joints, capsules });
            self.add(child, Some(self.bodies.len() - 1))?;
        }
        Ok(())
    }
}

/// A joint's name without the suffix `_joint`.
fn plain(name: &str) -> String {
    name.trim_end_matches("_joint").replace('_', " ")
}

/// `[x, z]` of `[x, y, z]`.
fn flat(point: &[f64]) -> [f64; 2] {
    [point[0], point[2]]
}

/// The numbers of an attribute. Their count must equal the count of the default.
fn numbers(node: Node<'_, '_>, name: &str, default: &[f64]) -> Result<Vec<f64>, String> {
    let Some(text) = node.attribute(name) else { return Ok(default.to_vec()) };
    let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    match numbers {
        Ok(numbers) if numbers.len() == default.len() => Ok(numbers),
        _ => Err(format!("{name}=\"{text}\" is not {} numbers", default.len())),
    }
}

fn joint(node: Node<'_, '_>) -> Result<Joint, String> {
    let axis = numbers(node, "axis", &[0.0, 0.0, 1.0])?;
    match (node.attribute("type"), &axis[..]) {
        (Some("slide"), [x, 0.0, z]) => {
            let from = numbers(node, "ref", &[0.0])?[0];
            Ok(Joint::Slide { along: [*x, *z], from })
        }
        (Some("hinge"), &[0.0, y, 0.0]) if y.abs() == 1.0 => {
            let around = flat(&numbers(node, "pos", &[0.0; 3])?);
            Ok(Joint::Hinge { around, sign: y })
        }
        (kind, _) => Err(format!("a joint of type {kind:?} around {axis:?} leaves the plane")),
    }
}

fn capsule(node: Node<'_, '_>) -> Result<Capsule, String> {
    if node.has_attribute("fromto") {
        let ends = numbers(node, "fromto", &[0.0; 6])?;
        let radius = numbers(node, "size", &[0.0])?[0];
        return Ok(Capsule { ends: [flat(&ends[..3]), flat(&ends[3..])], radius });
    }
    let size = numbers(node, "size", &[0.0; 2])?;
    let turn = match (node.has_attribute("axisangle"), node.has_attribute("quat")) {
        (true, _) => {
            // The models with this attribute use radians.
            let axis = numbers(node, "axisangle", &[0.0; 4])?;
            axis[1] * axis[3]
        }
        (_, true) => {
            let quaternion = numbers(node, "quat", &[0.0; 4])?;
            2.0 * quaternion[2].atan2(quaternion[0])
        }
        _ => 0.0,
    };
    let frame = Frame { origin: flat(&numbers(node, "pos", &[0.0; 3])?), turn };
    Ok(Capsule { ends: [size[1], -size[1]].map(|z| frame.place([0.0, z])), radius: size[0] })
}
