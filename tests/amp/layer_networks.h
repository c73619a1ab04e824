/* Small networks that together have a layer of every kind; %s is for more keys of [net]. */
#ifndef LAYER_NETWORKS_H
#define LAYER_NETWORKS_H

#include "engine_testing.h"

#define KEYS "learning_rate=0.0001\nmomentum=0.9\ndecay=0.01\nmax_batches=100000\namp=1\ninit_scale=64\n"
#define IMAGES "[net]\nbatch=4\nsubdivisions=2\nwidth=8\nheight=8\nchannels=3\n%s" KEYS
#define SEQUENCES "[net]\nbatch=12\nsubdivisions=2\ntime_steps=2\n%s" KEYS
#define BATCHNORM_CONV \
    "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
#define PLAIN_CONV(n) "[convolutional]\nfilters=" #n "\nsize=1\nstride=1\nactivation=linear\n"
#define YOLO_HEAD                                                                             \
    PLAIN_CONV(14) "[yolo]\nmask=0,1\nanchors=2,3, 4,4\nclasses=2\nnum=2\nignore_thresh=.7\n" \
    "truth_thresh=1\nrandom=0\n"

static const struct { const char *name, *cfg; } networks[] = {
    { "two yolo heads, shortcut, route, dropout, max pooling, a pinned layer",
      IMAGES BATCHNORM_CONV BATCHNORM_CONV "amp=0\n"
      "[shortcut]\nfrom=-2\nactivation=leaky\n[dropout]\nprobability=.2\n"
      "[maxpool]\nsize=2\nstride=2\n" BATCHNORM_CONV YOLO_HEAD
      "[route]\nlayers=-3\n[upsample]\nstride=2\n[route]\nlayers=-1,1\n" YOLO_HEAD },
    { "everything else in half, and a cost in the middle",
      IMAGES PLAIN_CONV(4) "[batchnorm]\n[activation]\nactivation=logistic\n[cost]\ntype=sse\n[route]\n"
      "layers=-2,0\n[reorg]\nstride=2\n[avgpool]\n[connected]\nbatch_normalize=1\noutput=6\nactivation=relu\n"
      "[connected]\noutput=256\nactivation=linear\n[cost]\ntype=smooth\n" },
    { "Darknet's own layers",
      IMAGES "[crop]\ncrop_width=6\ncrop_height=6\n" BATCHNORM_CONV
      "[normalization]\nsize=3\nalpha=.0001\nbeta=.75\nkappa=1\n[convolutional]\nbinary=1\nfilters=4\n"
      "size=3\nstride=1\npad=1\nactivation=leaky\n[l2norm]\n" PLAIN_CONV(5) "[softmax]\n" },
    { "deconvolutional layers, two of which give one layer its delta, and local ones",
      IMAGES BATCHNORM_CONV "[deconvolutional]\nbatch_normalize=1\nfilters=4\nsize=2\nstride=2\n"
      "activation=leaky\n[route]\nlayers=0\n[deconvolutional]\nfilters=3\nsize=4\nstride=2\npadding=1\n"
      "activation=relu\n[route]\nlayers=-1,1\n[local]\nfilters=3\nsize=3\nstride=2\npad=1\nactivation=leaky\n"
      "[local]\nfilters=2\nsize=2\nstride=2\nactivation=logistic\n[cost]\ntype=sse\n" },
    { "rnn, gru and lstm",
      SEQUENCES "inputs=5\n[rnn]\nbatch_normalize=1\noutput=6\nactivation=tanh\n[gru]\noutput=6\n[lstm]\n"
      "batch_normalize=1\noutput=5\n[route]\nlayers=-1,0\n[connected]\noutput=4\nactivation=linear\n"
      "[logistic]\n" },
    { "crnn", SEQUENCES "width=6\nheight=6\nchannels=2\n[crnn]\nbatch_normalize=1\nhidden_filters=3\n"
      "output_filters=4\nactivation=leaky\n" PLAIN_CONV(2) "[cost]\ntype=L1\n" },
    { "region", IMAGES BATCHNORM_CONV PLAIN_CONV(14)
      "[region]\nanchors=1,1, 2,3\nbias_match=1\nclasses=2\ncoords=4\nnum=2\nsoftmax=1\n"
      "object_scale=5\nnoobject_scale=1\nclass_scale=1\ncoord_scale=1\nthresh=.6\nrandom=0\n" },
    { "detection", IMAGES PLAIN_CONV(4)
      "[connected]\noutput=52\nactivation=linear\n[detection]\nclasses=3\ncoords=4\nside=2\nnum=2\n"
      "softmax=0\nsqrt=1\njitter=.2\nobject_scale=1\nnoobject_scale=.5\nclass_scale=1\ncoord_scale=5\n"
      "rescore=1\n" },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static network *make(int which, const char *net_keys, const char *dtype)
{
    char text[4096];
    snprintf(text, sizeof text, networks[which].cfg, net_keys);
    return parse(text, dtype);
}

#endif
