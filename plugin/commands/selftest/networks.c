/* Small networks for `darknet amp selftest`, which together have every kind of layer that AMP computes
 * itself. A network with a section that this Darknet lacks is left out. Each line is a section. */
#include "selftest.h"

#define NET "[net] batch=2 subdivisions=1 channels=3 learning_rate=0.001 max_batches=10 "
#define YOLO "[yolo] anchors=4,5,8,8,12,14,14,12,20,20,28,30 classes=2 num=6 ignore_thresh=.7 truth_thresh=1 "

const amp_selftest_network amp_selftest_networks[] = {
    { "a detector: convolutional, maxpool, shortcut, dropout, route, upsample, yolo", NULL,
      NET "width=32 height=32 "
      "[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=leaky "
      "[maxpool] size=2 stride=2 "
      "[convolutional] batch_normalize=1 filters=12 size=3 stride=2 pad=1 activation=leaky "
      "[convolutional] batch_normalize=1 filters=20 size=1 stride=1 activation=leaky "
      "[convolutional] batch_normalize=1 filters=12 size=3 stride=1 pad=1 activation=leaky "
      "[shortcut] from=-3 activation=linear "
      "[dropout] probability=.2 "
      "[convolutional] batch_normalize=1 filters=24 size=3 stride=1 pad=1 activation=leaky "
      "[convolutional] filters=21 size=1 stride=1 activation=linear "
      YOLO "mask=3,4,5 "
      "[route] layers=-3 "
      "[convolutional] batch_normalize=1 filters=10 size=1 stride=1 activation=leaky "
      "[upsample] stride=2 "
      "[route] layers=-1,1 "
      "[convolutional] batch_normalize=1 filters=28 size=3 stride=1 pad=1 activation=leaky "
      "[convolutional] filters=21 size=1 stride=1 activation=linear "
      YOLO "mask=0,1,2 " },
    { "a classifier: groups, batchnorm, activation, reorg, connected, avgpool, softmax", NULL,
      NET "width=16 height=16 "
      "[convolutional] filters=8 size=5 stride=2 pad=1 activation=linear "
      "[batchnorm] "
      "[activation] activation=logistic "
      "[convolutional] batch_normalize=1 filters=16 groups=2 size=3 stride=1 pad=1 activation=tanh "
      "[reorg] stride=2 "
      "[convolutional] batch_normalize=1 filters=18 size=3 stride=1 pad=1 activation=relu "
      "[maxpool] size=3 stride=1 "
      "[avgpool] "
      "[connected] output=14 activation=leaky "
      "[connected] output=5 activation=linear "
      "[softmax] " },
    { "deconvolutional", "[deconvolutional]",
      NET "width=8 height=8 "
      "[convolutional] batch_normalize=1 filters=6 size=3 stride=1 pad=1 activation=leaky "
      "[deconvolutional] filters=5 size=4 stride=2 padding=1 activation=leaky "
      "[deconvolutional] batch_normalize=1 filters=7 size=3 stride=1 pad=1 activation=logistic "
      "[avgpool] "
      "[connected] output=4 activation=linear "
      "[softmax] " },
    { "scale_channels, sam, mish, swish", "[scale_channels]",
      NET "width=16 height=16 "
      "[convolutional] batch_normalize=1 filters=8 size=3 stride=1 pad=1 activation=mish "
      "[avgpool] "
      "[convolutional] filters=8 size=1 stride=1 activation=logistic "
      "[scale_channels] from=-3 activation=linear "
      "[convolutional] batch_normalize=1 filters=12 size=3 stride=2 pad=1 activation=swish "
      "[convolutional] filters=12 size=1 stride=1 activation=logistic "
      "[sam] from=-2 "
      "[convolutional] batch_normalize=1 filters=6 size=3 stride=1 pad=1 activation=mish "
      "[avgpool] "
      "[connected] output=4 activation=linear "
      "[softmax] " },
    { 0 } };
