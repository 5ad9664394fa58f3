"""Rules of scipy.spatial.

alignment    the rotation nearest to a matrix, the mean of rotations, alignment of vectors
distances    scipy.spatial.distance, and what else measures distances
euler        angles about three axes
fields       fields of compiled objects, which go by value
hulls        volume and area of convex hulls; diagrams and triangulations
neighbours   KDTree and cKDTree
quaternions  functions of quaternions, as formulas
rotations    scipy.spatial.transform.Rotation, by its compiled functions
transforms   scipy.spatial.transform.RigidTransform, by its compiled functions
"""

from morula.rules.scipy.spatial import distances as distances
from morula.rules.scipy.spatial import hulls as hulls
from morula.rules.scipy.spatial import neighbours as neighbours
from morula.rules.scipy.spatial import rotations as rotations
from morula.rules.scipy.spatial import transforms as transforms
