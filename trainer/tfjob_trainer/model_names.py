"""The names by which a model can be asked for, known without importing Keras.

digits                 a small convolutional network for small images
resnet50               ResNet-50 v1.5, our own (the stride is in the 3x3 convolution)
ResNet50, VGG16, …     every model of keras.applications, by its name there, in any case of letters as long as
                       that is not one of ours
package.module:function, /path/file.py:function
                       the user's own: a function that returns a Keras model
"""

import difflib

from tfjob_trainer.errors import UsageError

OWN = ("digits", "resnet50")
APPLICATIONS = tuple(
    "ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge DenseNet121 DenseNet169 DenseNet201 "
    "EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4 EfficientNetB5 EfficientNetB6 "
    "EfficientNetB7 EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2L "
    "EfficientNetV2M EfficientNetV2S InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 MobileNetV3Large "
    "MobileNetV3Small NASNetLarge NASNetMobile ResNet101 ResNet101V2 ResNet152 ResNet152V2 ResNet50 ResNet50V2 "
    "VGG16 VGG19 Xception".split()
)


def canonical(name: str) -> str:
    """The model's name as it is written in this module. Raises UsageError, with the nearest names.

    A user's own model is taken as it is: only its two parts are looked at.
    """
    if ":" in name:
        place, _, function = name.rpartition(":")
        if place and function.isidentifier():
            return name
        raise UsageError(
            f"--model {name}: a model of your own is package.module:function or /path/file.py:function"
        )
    if name in OWN or name in APPLICATIONS:
        return name
    by_lower = {known.lower(): known for known in (*APPLICATIONS, *OWN)}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = difflib.get_close_matches(name.lower(), by_lower, n=3)
    hint = f"the nearest: {', '.join(by_lower[word] for word in near)}" if near else f"for example {OWN[1]}"
    raise UsageError(
        f"--model {name} is not known; {hint}. It can be {', '.join(OWN)}, a model of keras.applications, "
        "or one of your own as package.module:function or /path/file.py:function"
    )
